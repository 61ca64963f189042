//! Detectors: model to findings. Each finding names its evidence, the side at fault, the era and the clause; silence when nobody is at fault.

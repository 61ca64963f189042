"""What both cost scripts share: where the programs are, and how rows of figures are judged."""

import os
import pathlib
import shutil
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
WIREBENCH = os.environ.get("WIREBENCH", shutil.which("wirebench") or "")
CORE = os.environ.get("CORE", "1")


def are_built(*programs):
    return bool(WIREBENCH) and all((TARGET / program).exists() for program in ("midwire", *programs))


def fail(why):
    """Ends it all: what was measured is worth nothing."""
    print(why, file=sys.stderr)
    sys.exit(2)


def median(seen, figure):
    return statistics.median(figure(one) for one in seen)


def judge(rows):
    """Prints rows of (job, figure, must, aim, whether a larger figure is better); whether every must is met."""
    is_met = True
    for job, figure, must, aim, is_more_better in rows:
        meets = (lambda limit: figure >= limit) if is_more_better else (lambda limit: figure <= limit)
        verdict = "aim" if meets(aim) else "must" if meets(must) else "MISSED"
        is_met &= verdict != "MISSED"
        print(f"{job:<48} {figure:8.2f}   must {must:<5} aim {aim:<5} {verdict}", flush=True)
    return is_met

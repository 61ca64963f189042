//! Named actions and the keys that reach them.
//!
//! Every key is a named action: what a key can do, the command line (`:`) can do, a file can
//! remap, a test can drive and the help page can list.

use std::collections::HashMap;

use super::chord::Chord;

/// Defines the actions once: variant, name, keys (blank between alternatives, `_` between the keys
/// of a sequence), meaning.
macro_rules! actions {
    ($($variant:ident $name:literal $keys:literal $doc:literal,)*) => {
        /// Something a person can ask the viewer to do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Action { $(#[doc = $doc] $variant,)* }

        impl Action {
            /// Every action, grouped as the help page shows them.
            pub const ALL: &'static [Action] = &[$(Action::$variant),*];

            /// Its name on the command line and in files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Action::$variant => $name),* }
            }

            /// What it does, in a few words.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Action::$variant => $doc),* }
            }

            fn default_keys(self) -> &'static str {
                match self { $(Action::$variant => $keys),* }
            }
        }
    };
}

actions! {
    Down "down" "j down" "next line",
    Up "up" "k up" "previous line",
    Left "left" "h left" "fold, or earlier in time",
    Right "right" "l right" "unfold, or later in time",
    Top "top" "g home" "first line",
    End "end" "G end" "last line, and follow again",
    PageDown "page-down" "space pgdn ctrl-f" "one page down",
    PageUp "page-up" "b pgup ctrl-b" "one page up",
    HalfDown "half-down" "ctrl-d" "half a page down",
    HalfUp "half-up" "ctrl-u" "half a page up",
    NextError "next-error" "]_e" "next error",
    PreviousError "previous-error" "[_e" "previous error",
    NextGap "next-gap" "]_g" "next gap in the recording",
    PreviousGap "previous-gap" "[_g" "previous gap in the recording",
    Open "open" "enter" "open",
    Back "back" "esc" "one step back; never quits",
    Close "close" "q" "back; quits from the first view",
    Quit "quit" "Q" "quit at once",
    Home "home" "1" "taps and recordings",
    Calls "calls" "2" "the calls",
    Stream "stream" "3" "every event",
    Findings "findings" "4" "what is wrong",
    Hands "faults" "5" "what the tap does to the traffic",
    Help "help" "? f1" "every key of this view",
    Pane "pane" "tab" "next pane",
    PaneBack "pane-back" "shift-tab" "previous pane",
    Tab "tab" "v" "next tab: tree, raw, headers, timing",
    TabBack "tab-back" "V" "previous tab",
    Preview "preview" "|" "show or hide the pane below the list",
    Maximise "maximise" "\\" "give the pane the whole screen, or take it back",
    Taller "taller" ">" "more room for the pane below",
    Shorter "shorter" "<" "less room for the pane below",
    Filter "filter" "/" "filter the list",
    NextMatch "next-match" "n" "next match",
    PreviousMatch "previous-match" "N" "previous match",
    Follow "follow" "F" "follow what comes in",
    Pause "pause" "p" "hold the screen still; recording goes on",
    Sort "sort" "s" "sort by the next column",
    Reverse "reverse" "S" "turn the order round",
    Mark "mark" "m" "remember this line under a letter",
    Jump "jump" "'" "jump to a remembered line",
    Reference "reference" "t" "count time from this line, or from the start again",
    ZoomIn "zoom-in" "+ =" "less time in each column",
    ZoomOut "zoom-out" "-" "more time in each column",
    Fit "fit" "0" "fit time to what is on the screen",
    Copy "copy" "y" "copy: what, is asked",
    Order "order" "x" "an order to the tap: cancel, hold, cut, retry, delay …",
    Release "release" "a" "let the held message pass",
    ReleaseAll "release-all" "A" "let all held messages pass",
    ReleaseReverse "release-reverse" "R" "let all held messages pass, the newest first",
    Drop "drop" "d" "drop the held message, or disarm the rule",
    Edit "edit" "e" "let the held message pass with another text",
    MoreTime "more-time" "w" "hold the message 30 s longer",
    AllOff "all-off" "Z" "disarm every rule and let what is held pass",
    Command "command" ":" "any action by its name",
    Mouse "mouse" "f2" "mouse on or off; off lets the terminal select text",
    Hints "hints" "f3" "show or hide the line of keys",
    Redraw "redraw" "ctrl-l" "draw the screen again",
    Suspend "suspend" "ctrl-z" "leave to the shell; fg comes back",
    Interrupt "interrupt" "ctrl-c" "stop what is going on; twice quits",
}

impl Action {
    /// The action of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Action> {
        Action::ALL.iter().copied().find(|action| action.name() == name)
    }

    /// It moves within a list, so a number before it repeats it.
    #[must_use]
    pub fn is_motion(self) -> bool {
        matches!(
            self,
            Action::Down
                | Action::Up
                | Action::Left
                | Action::Right
                | Action::Top
                | Action::End
                | Action::PageDown
                | Action::PageUp
                | Action::HalfDown
                | Action::HalfUp
                | Action::NextError
                | Action::PreviousError
                | Action::NextMatch
                | Action::PreviousMatch
        )
    }
}

/// What the keys pressed so far mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// An action.
    Is(Action),
    /// The beginning of a sequence.
    Begins,
    /// Nothing.
    Nothing,
}

/// Which keys reach which action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyMap {
    bindings: HashMap<Vec<Chord>, Action>,
    /// The same in the order of definition, so that the first key of an action is the one shown.
    order: Vec<(Vec<Chord>, Action)>,
}

impl Default for KeyMap {
    fn default() -> KeyMap {
        let mut map = KeyMap { bindings: HashMap::new(), order: Vec::new() };
        for action in Action::ALL {
            for keys in action.default_keys().split(' ') {
                if let Some(sequence) = Chord::parse_sequence(&keys.replace('_', " ")) {
                    map.bind(sequence, Some(*action));
                }
            }
        }
        map
    }
}

impl KeyMap {
    /// Gives a sequence of keys to an action, or to none.
    pub fn bind(&mut self, keys: Vec<Chord>, action: Option<Action>) {
        self.order.retain(|(bound, _)| *bound != keys);
        self.bindings.remove(&keys);
        if let Some(action) = action {
            self.order.push((keys.clone(), action));
            self.bindings.insert(keys, action);
        }
    }

    /// What these keys, pressed one after the other, mean.
    #[must_use]
    pub fn lookup(&self, keys: &[Chord]) -> Lookup {
        if let Some(action) = self.bindings.get(keys) {
            return Lookup::Is(*action);
        }
        let is_begun =
            self.order.iter().any(|(bound, _)| bound.len() > keys.len() && bound.starts_with(keys));
        if is_begun { Lookup::Begins } else { Lookup::Nothing }
    }

    /// The keys of an action as text, the first the one to show; empty when it has none.
    #[must_use]
    pub fn keys_of(&self, action: Action) -> Vec<String> {
        let of_action = self.order.iter().filter(|(_, bound)| *bound == action);
        of_action.map(|(keys, _)| keys.iter().map(Chord::to_string).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<Chord> {
        Chord::parse_sequence(text).unwrap()
    }

    #[test]
    fn every_action_has_a_key_of_its_own_and_a_name_of_its_own() {
        let map = KeyMap::default();
        let asked: usize = Action::ALL.iter().map(|a| a.default_keys().split(' ').count()).sum();
        assert_eq!(map.order.len(), asked, "a key is given twice or cannot be read");
        for action in Action::ALL {
            assert!(!map.keys_of(*action).is_empty(), "{action:?}");
            assert_eq!(Action::from_name(action.name()), Some(*action));
        }
    }

    #[test]
    fn a_sequence_begins_and_ends() {
        let map = KeyMap::default();
        assert_eq!(map.lookup(&keys("]")), Lookup::Begins);
        assert_eq!(map.lookup(&keys("] e")), Lookup::Is(Action::NextError));
        assert_eq!(map.lookup(&keys("] z")), Lookup::Nothing);
    }

    #[test]
    fn a_key_can_be_moved_and_taken_away() {
        let mut map = KeyMap::default();
        map.bind(keys("ctrl-n"), Some(Action::Down));
        map.bind(keys("j"), None);
        assert_eq!(map.lookup(&keys("ctrl-n")), Lookup::Is(Action::Down));
        assert_eq!(map.lookup(&keys("j")), Lookup::Nothing);
        assert_eq!(map.keys_of(Action::Down), ["down", "ctrl-n"]);
    }
}

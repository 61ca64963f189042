//! How an authorization request gets to somebody who can say yes, and how the answer comes back.

mod listener;

use std::fmt;
use std::sync::Arc;

use hyper::header::LOCATION;

use self::listener::Landing;
use super::error::AuthError;
use super::fetch;

/// Where the redirect of [`Opener::Follow`] would lead; nobody listens there.
const NOWHERE: &str = "http://127.0.0.1/callback";

/// Told one line for the person.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Who opens the page of the authorization server.
#[derive(Clone, Default)]
pub enum Opener {
    /// Nobody is there.
    #[default]
    Nobody,
    /// A person with a browser, who is told the address; the answer comes to a port of this machine.
    Person {
        /// Says a line to the person.
        tell: Tell,
        /// The port; 0: any free one.
        port: u16,
    },
    /// The client itself, for a server that asks nobody and redirects at once.
    Follow,
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Opener::Nobody => "Nobody",
            Opener::Person { .. } => "Person",
            Opener::Follow => "Follow",
        })
    }
}

/// The way back, which is the same for every request of a client: it is registered with it.
#[derive(Debug)]
pub(super) enum Door {
    Landing { landing: Landing, tell: Hidden },
    Follow,
}

/// A [`Tell`] that does not get in the way of `Debug`.
#[derive(Clone)]
pub(super) struct Hidden(Tell);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

impl Opener {
    /// Opens the way back.
    ///
    /// # Errors
    /// When nobody is there (`None`), or the port cannot be had.
    pub(super) async fn door(&self) -> Result<Option<Door>, AuthError> {
        match self {
            Opener::Nobody => Ok(None),
            Opener::Follow => Ok(Some(Door::Follow)),
            Opener::Person { tell, port } => {
                Ok(Some(Door::Landing { landing: Landing::open(*port).await?, tell: Hidden(tell.clone()) }))
            }
        }
    }
}

impl Door {
    /// Where the answer is sent to.
    pub(super) fn redirect_uri(&self) -> &str {
        match self {
            Door::Landing { landing, .. } => landing.redirect_uri(),
            Door::Follow => NOWHERE,
        }
    }

    /// Has the page opened and waits for the answer: what stands behind its `?`.
    ///
    /// # Errors
    /// When none comes.
    pub(super) async fn ask(&self, url: &str, state: &str) -> Result<String, AuthError> {
        match self {
            Door::Landing { landing, tell } => {
                (tell.0)(&format!("open this in a browser to sign in: {url}"));
                landing.wait(state).await
            }
            Door::Follow => follow(url).await,
        }
    }
}

async fn follow(url: &str) -> Result<String, AuthError> {
    let answer = fetch::get("the page to sign in", url).await?;
    let place = answer.fields.get(LOCATION).and_then(|place| place.to_str().ok());
    let query = place.and_then(|place| place.strip_prefix(NOWHERE)).and_then(|rest| rest.strip_prefix('?'));
    let missing = || AuthError::NotSignedIn {
        why: format!("the page is answered with status {} and no way back", answer.status),
    };
    query.map(str::to_owned).ok_or_else(missing)
}

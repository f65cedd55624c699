//! The keys by which a token is known as one of ours.

#[cfg(feature = "signed")]
pub use self::signed::TokenKeys;

/// The bytes of a seal: which key it is of, and the HMAC. A multiple of 3, so that base64 has no rest.
pub(super) const SEAL: usize = KEY_ID + 32;
const KEY_ID: usize = 4;

/// Whether a seal is one of ours.
#[cfg_attr(not(feature = "signed"), allow(dead_code))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is.
    Genuine,
    /// It names one of our keys, which has not made it.
    Forged,
    /// It names none of our keys.
    UnknownKey,
}

/// Without the feature there are no keys.
#[cfg(not(feature = "signed"))]
#[derive(Debug)]
pub(crate) enum TokenKeys {}

#[cfg(not(feature = "signed"))]
impl TokenKeys {
    pub(super) fn seal(&self, _: &[u8]) -> [u8; SEAL] {
        match *self {}
    }

    pub(super) fn check(&self, _: &[u8], _: [u8; SEAL]) -> Verdict {
        match *self {}
    }
}

#[cfg(feature = "signed")]
mod signed {
    use std::fmt;

    use hmac::{Hmac, Mac};
    use sha2::Sha256;

    use super::{KEY_ID, SEAL, Verdict};
    use crate::cluster::ConfigError;

    /// The shortest key, in bytes: as long as what it makes.
    const MIN_KEY: usize = 32;

    /// The secrets by which a client's token is known as one that this application has written.
    ///
    /// Without them a client could write a token of its own. That shows it nothing that it may not
    /// see; it could only send its own reads to the primary.
    ///
    /// The first key signs, and all are accepted. To change keys, put the new one first and keep the
    /// old one for as long as tokens live (`sticky_for`). Processes that do not have the new key
    /// yet take its tokens for those of somebody who has just written.
    ///
    /// ```
    /// use diesel_routed::TokenKeys;
    ///
    /// # let (new, old) = ([1; 32], [0; 32]);
    /// let keys = TokenKeys::new(new)?.accept(old)?;
    /// assert_eq!(format!("{keys:?}"), "TokenKeys", "no secrets in logs");
    /// assert!(TokenKeys::new("too short").is_err());
    /// # Ok::<(), diesel_routed::ConfigError>(())
    /// ```
    #[derive(Clone)]
    pub struct TokenKeys {
        /// The first one signs.
        keys: Vec<Key>,
    }

    #[derive(Clone)]
    struct Key {
        id: [u8; KEY_ID],
        /// Fed with the key, and nothing else yet.
        hmac: Hmac<Sha256>,
    }

    impl TokenKeys {
        /// Takes the key that signs: at least 32 bytes, and best random ones.
        ///
        /// # Errors
        ///
        /// [`ConfigError::Invalid`] if the key is shorter.
        pub fn new(key: impl AsRef<[u8]>) -> Result<Self, ConfigError> {
            Self { keys: vec![] }.accept(key)
        }

        /// Accepts what was signed with another key as well.
        ///
        /// # Errors
        ///
        /// As [`new`](Self::new).
        pub fn accept(mut self, key: impl AsRef<[u8]>) -> Result<Self, ConfigError> {
            self.keys.push(Key::new(key.as_ref())?);
            Ok(self)
        }

        pub(in super::super) fn seal(&self, text: &[u8]) -> [u8; SEAL] {
            let key = self.keys.first().expect("the first key was given to `new`");
            let mut seal = [0; SEAL];
            let (id, mac) = seal.split_at_mut(KEY_ID);
            id.copy_from_slice(&key.id);
            mac.copy_from_slice(&key.of(text).finalize().into_bytes());
            seal
        }

        pub(in super::super) fn check(&self, text: &[u8], seal: [u8; SEAL]) -> Verdict {
            let (id, mac) = seal.split_at(KEY_ID);
            let mut named = self.keys.iter().filter(|key| key.id == id).peekable();
            if named.peek().is_none() {
                Verdict::UnknownKey
            } else if named.any(|key| key.of(text).verify_slice(mac).is_ok()) {
                Verdict::Genuine
            } else {
                Verdict::Forged
            }
        }
    }

    impl Key {
        fn new(key: &[u8]) -> Result<Self, ConfigError> {
            if key.len() < MIN_KEY {
                return Err(ConfigError::Invalid {
                    setting: "token key".to_owned(),
                    value: format!("one of {} bytes", key.len()),
                    accepted: format!("at least {MIN_KEY} random bytes"),
                });
            }
            let hmac = Hmac::new_from_slice(key).expect("HMAC takes a key of any length");
            let mut key = Self {
                id: [0; KEY_ID],
                hmac,
            };
            // no token begins like this, so that it says nothing of any seal
            let name = key.of(b"name of this key").finalize().into_bytes();
            key.id.copy_from_slice(&name[..KEY_ID]);
            Ok(key)
        }

        fn of(&self, text: &[u8]) -> Hmac<Sha256> {
            self.hmac.clone().chain_update(text)
        }
    }

    impl fmt::Debug for TokenKeys {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("TokenKeys")
        }
    }
}

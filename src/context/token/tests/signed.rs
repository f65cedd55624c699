//! Keys: who has written a token.

use super::*;

fn keys(signs: u8, accepted: &[u8]) -> TokenKeys {
    let first = TokenKeys::new([signs; 32]).unwrap();
    accepted
        .iter()
        .fold(first, |keys, key| keys.accept([*key; 32]).unwrap())
}

#[test]
fn only_what_a_known_key_has_sealed_is_read() {
    let list = vec![written("shop", 5, Some("mariadb:0-100-9"))];
    let plain = write(&list, None).unwrap();
    let token = write(&list, Some(&keys(1, &[]))).unwrap();
    assert!(token.starts_with(&plain), "sealed, not encrypted");
    let table = [
        (
            Some(keys(1, &[])),
            &token,
            Read::Written(list.clone()),
            "the same key",
        ),
        (
            Some(keys(2, &[1])),
            &token,
            Read::Written(list),
            "a new key signs, the old one is accepted",
        ),
        (
            Some(keys(2, &[])),
            &token,
            Read::JustWrote,
            "the new key is not here yet",
        ),
        (None, &token, Read::JustWrote, "nor is any"),
        (Some(keys(1, &[])), &plain, Read::Nothing, "unsealed"),
    ];
    for (keys, token, expected, why) in table {
        assert_eq!(read(token, keys.as_ref()), expected, "{why}");
    }
}

#[test]
fn no_altered_token_is_read() {
    let list = [written("shop", 5, Some("mariadb:0-100-9"))];
    let keys = keys(1, &[2]);
    let token = write(&list, Some(&keys)).unwrap();
    for at in 0..token.len() {
        for byte in [b'A', b'.', b'2', b'_', b' '] {
            let mut altered = token.clone().into_bytes();
            if std::mem::replace(&mut altered[at], byte) == byte {
                continue;
            }
            let altered = String::from_utf8(altered).unwrap();
            let read = read(&altered, Some(&keys));
            assert!(!matches!(read, Read::Written(_)), "{altered}");
        }
        assert_eq!(
            read(&token[..at], Some(&keys)),
            Read::Nothing,
            "cut at {at}"
        );
    }
}

#[test]
fn the_largest_token_has_room_for_its_seal() {
    let list = [written("shop", 5, Some(&long_position(660)))];
    for keys in [None, Some(keys(1, &[]))] {
        let token = write(&list, keys.as_ref()).unwrap();
        assert!(token.len() <= MAX_TOKEN, "{} bytes", token.len());
        assert_eq!(read(&token, keys.as_ref()), Read::Written(list.to_vec()));
    }
}

#[test]
fn a_short_key_is_refused_and_none_is_shown() {
    let error = TokenKeys::new("S3CRET").unwrap_err().to_string();
    assert_eq!(
        error,
        "token key: one of 6 bytes is not accepted, write at least 32 random bytes"
    );
    let keys = TokenKeys::new("S3CRET".repeat(6)).unwrap();
    assert!(keys.clone().accept([0; 31]).is_err());
    assert_eq!(format!("{keys:?}"), "TokenKeys");
}

//! New names for old ones.

/// Words that stay between `<` and `>`, or `{` and `}`: interpreters' names for anonymous code.
const ANONYMOUS: [&[u8]; 15] = [
    b"main",
    b"closure",
    b"internal",
    b"module",
    b"GC",
    b"native",
    b"lambda",
    b"locals",
    b"genexpr",
    b"listcomp",
    b"dictcomp",
    b"setcomp",
    b"frozen",
    b"task",
    b"root",
];

/// File endings that stay.
const ENDINGS: [&[u8]; 14] =
    [b"php", b"py", b"pyx", b"rs", b"c", b"cc", b"cpp", b"h", b"go", b"js", b"ts", b"so", b"phar", b"inc"];

/// Generates names with a key.
#[derive(Clone, Copy)]
pub(super) struct Namer {
    pub(super) key: [u64; 2],
}

impl Namer {
    /// Replaces each word of a name and keeps the characters between words.
    pub(super) fn words(&self, name: &[u8]) -> Vec<u8> {
        let mut new = Vec::with_capacity(name.len());
        let mut at = 0;
        while at < name.len() {
            let end = (at..name.len()).find(|&end| !is_of_word(name[end])).unwrap_or(name.len());
            if end == at {
                new.push(name[at]);
                at += 1;
                continue;
            }
            if stays(name, at, end) {
                new.extend_from_slice(&name[at..end]);
            } else {
                new.extend_from_slice(&self.word(b'n', &name[at..end]));
            }
            at = end;
        }
        new
    }

    /// Replaces a whole text by one word.
    pub(super) fn whole(&self, text: &[u8]) -> Vec<u8> {
        if text.is_empty() { Vec::new() } else { self.word(b'v', text) }
    }

    /// A letter and twelve hexadecimal digits: even among a million names a collision is unlikely.
    fn word(&self, letter: u8, word: &[u8]) -> Vec<u8> {
        let digits = format!("{:016x}", siphash(self.key, word));
        [&[letter], &digits.as_bytes()[..12]].concat()
    }
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn stays(name: &[u8], at: usize, end: usize) -> bool {
    let word = &name[at..end];
    let before = at.checked_sub(1).map(|before| name[before]);
    let after = name.get(end).copied();
    let is_enclosed =
        matches!((before, after), (Some(b'<'), Some(b'>' | b' ')) | (Some(b'{'), Some(b'}' | b':')));
    let is_ending = before == Some(b'.') && after.is_none();
    (is_enclosed && ANONYMOUS.contains(&word)) || (is_ending && ENDINGS.contains(&word))
}

/// SipHash-2-4.
///
/// Source: J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012.
pub(super) fn siphash(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut chunks = bytes.chunks_exact(8);
    let take = |state: &mut [u64; 4], word: u64| {
        state[3] ^= word;
        round(state);
        round(state);
        state[0] ^= word;
    };
    for chunk in &mut chunks {
        take(&mut state, chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)));
    }
    let length = (bytes.len() as u64) << 56;
    let rest = chunks.remainder().iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    take(&mut state, length | rest);
    state[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

const fn round(state: &mut [u64; 4]) {
    let [mut a, mut b, mut c, mut d] = *state;
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    *state = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first vectors of the paper's reference program: key 00 01 .. 0f, input 00 01 .. of each length.
    #[test]
    fn the_hash_is_that_of_its_paper() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let input: Vec<u8> = (0..15).collect();
        assert_eq!(siphash(key, &[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(siphash(key, &input), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn words_change_and_forms_stay() {
        let namer = Namer { key: [1, 2] };
        let new = |name: &str| String::from_utf8(namer.words(name.as_bytes())).unwrap();
        let (method, path) = (new(r"Acme\Pay::charge"), new("/srv/Acme/Pay.php"));
        let words: Vec<_> = method.split(['\\', ':']).filter(|word| !word.is_empty()).collect();
        assert_eq!(path, format!("/{}/{}/{}.php", new("srv"), words[0], words[1]));
        assert!(words.iter().all(|word| word.len() == 13 && word.starts_with('n')), "{words:?}");
        assert_eq!(
            (new("<main>"), new("{closure}"), new("<module>")),
            ("<main>".into(), "{closure}".into(), "<module>".into())
        );
        assert_ne!(new("main"), "main");
        assert_ne!(Namer { key: [1, 3] }.words(b"main"), namer.words(b"main"));
        assert_eq!(namer.words(b"caf\xe9 \xff").len(), 27);
        assert_ne!(namer.whole(b"SELECT 1"), namer.words(b"SELECT 1"));
    }
}

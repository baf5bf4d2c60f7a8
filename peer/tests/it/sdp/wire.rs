//! Builds messages octet by octet, as Figures 2 to 15 of draft-pinkerton-iwarp-sdp-01 show them.
//! This module does not use the code under test.

/// A BSDH (Figure 2) and the octets after it.
pub(crate) fn message(bufs: u16, flags: u8, mid: u8, mseq: u32, mseq_ack: u32, rest: &[u8]) -> Vec<u8> {
    let mut out = bufs.to_be_bytes().to_vec();
    out.extend([flags, mid]);
    out.extend((16 + rest.len() as u32).to_be_bytes());
    out.extend(mseq.to_be_bytes());
    out.extend(mseq_ack.to_be_bytes());
    out.extend(rest);
    out
}

/// Reverses the fields of the first word, as in the mirrored field order (`FieldOrder::Mirrored`).
pub(crate) fn mirror_first_word(mut octets: Vec<u8>) -> Vec<u8> {
    let [high, low, flags, mid] = [octets[0], octets[1], octets[2], octets[3]];
    octets[..4].copy_from_slice(&[mid, flags, high, low]);
    octets
}

/// A Hello (Figure 5).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hello {
    pub(crate) bufs: u16,
    pub(crate) mseq: u32,
    pub(crate) mseq_ack: u32,
    pub(crate) max_adverts: u16,
    pub(crate) rsvd: u8,
    pub(crate) version: u8,
    pub(crate) des_rem: u32,
    pub(crate) local: u32,
    pub(crate) ird: u16,
    pub(crate) ord: u16,
}

pub(crate) const HELLO: Hello = Hello {
    bufs: 16,
    mseq: 0,
    mseq_ack: 0,
    max_adverts: 16,
    rsvd: 0,
    version: 0x11,
    des_rem: 8192,
    local: 8192,
    ird: 16,
    ord: 16,
};

impl Hello {
    pub(crate) fn octets(self) -> Vec<u8> {
        let mut rest = self.max_adverts.to_be_bytes().to_vec();
        rest.extend([self.rsvd, self.version]);
        rest.extend(self.des_rem.to_be_bytes());
        rest.extend(self.local.to_be_bytes());
        rest.extend(self.ird.to_be_bytes());
        rest.extend(self.ord.to_be_bytes());
        message(self.bufs, 0, 0x00, self.mseq, self.mseq_ack, &rest)
    }

    /// The octets as a HelloAck (Figure 6), which has no DesRemRcvSz. `local` is its ActRcvSz.
    pub(crate) fn ack(self) -> Vec<u8> {
        let mut rest = self.max_adverts.to_be_bytes().to_vec();
        rest.extend([self.rsvd, self.version]);
        rest.extend(self.local.to_be_bytes());
        rest.extend(self.ird.to_be_bytes());
        rest.extend(self.ord.to_be_bytes());
        message(self.bufs, 0, 0x01, self.mseq, self.mseq_ack, &rest)
    }

    pub(crate) fn mirrored(self) -> Vec<u8> {
        let mut octets = mirror_first_word(self.octets());
        let [high, low] = self.max_adverts.to_be_bytes();
        // In this order, MinV and MajV also change places.
        octets[16..20].copy_from_slice(&[self.version.rotate_left(4), self.rsvd, high, low]);
        let depths = [self.ord.to_be_bytes(), self.ird.to_be_bytes()].concat();
        octets[28..32].copy_from_slice(&depths);
        octets
    }
}

pub(crate) fn word(value: u32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

/// A SrcAH (Figure 7). It has Len, STag, and VA with the high word first.
pub(crate) fn src_ah(len: u32, stag: u32, va: u64) -> Vec<u8> {
    [word(len), word(stag), word((va >> 32) as u32), word(va as u32)].concat()
}

/// SinkAH (Figure 8).
pub(crate) fn sink_ah(len: u32, stag: u32, va: u64, non_discards: u32) -> Vec<u8> {
    [src_ah(len, stag, va), word(non_discards)].concat()
}

//! A secret that kiso put into a request, taken out of the answer: a service may repeat the address that it was asked for, or a header.
//!
//! The mask is as long as the secret, so a body keeps its length and can be streamed.

use aho_corasick::{AhoCorasick, MatchKind};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use hyper::body::{Body, Frame};
use kiso_store::secret::{SecretValue, spellings};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The beginning of the mask; stars fill the rest of the secret's length.
const LABEL: &[u8] = b"[token]";

/// Finds secrets in every form in which services repeat them.
pub struct SecretMask {
    spellings: Vec<SecretValue>,
    finder: AhoCorasick,
}

/// Debug output must not contain the secrets.
impl std::fmt::Debug for SecretMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretMask").finish_non_exhaustive()
    }
}

impl SecretMask {
    pub fn new(secret: &SecretValue) -> SecretMask {
        Self::of_all(&[secret])
    }

    /// Finds several, such as a password and the header that contains it.
    #[expect(clippy::expect_used, reason = "some dozen short patterns fit")]
    pub fn of_all(secrets: &[&SecretValue]) -> SecretMask {
        let spellings: Vec<_> = secrets.iter().flat_map(|secret| spellings(secret)).collect();
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(spellings.iter().map(|spelling| spelling.expose().as_bytes()));
        SecretMask { spellings, finder: finder.expect("some dozen short patterns fit") }
    }

    /// The text without the secret.
    #[expect(clippy::expect_used, reason = "whole characters were covered with ASCII")]
    pub fn text(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        self.cover(&mut bytes);
        String::from_utf8(bytes).expect("whole characters were covered with ASCII")
    }

    /// The same for the values of headers.
    pub fn headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            if self.cover(&mut bytes)
                && let Ok(covered) = HeaderValue::from_bytes(&bytes)
            {
                *value = covered;
            }
        }
    }

    /// Covers the secret where it is complete. Returns whether it did.
    fn cover(&self, bytes: &mut [u8]) -> bool {
        let found: Vec<_> = self.finder.find_iter(&*bytes).map(|found| found.range()).collect();
        for range in &found {
            let place = &mut bytes[range.clone()];
            place.fill(b'*');
            let label = LABEL.len().min(place.len());
            place[..label].copy_from_slice(&LABEL[..label]);
        }
        !found.is_empty()
    }

    /// The number of bytes at the end that may be the beginning of the secret.
    fn begun(&self, bytes: &[u8]) -> usize {
        let begun = |spelling: &SecretValue| {
            let spelling = spelling.expose().as_bytes();
            (1..spelling.len()).rev().find(|length| bytes.ends_with(&spelling[..*length])).unwrap_or(0)
        };
        self.spellings.iter().map(begun).max().unwrap_or(0)
    }
}

/// A body without the secret, even if the secret is split between pieces.
pub(super) struct MaskedBody<B> {
    body: Pin<Box<B>>,
    mask: Arc<SecretMask>,
    /// The end of the last piece, which may be the beginning of the secret.
    held: Vec<u8>,
    /// Trailers, which are sent after the held bytes.
    trailers: Option<HeaderMap>,
    ended: bool,
}

impl<B> MaskedBody<B> {
    pub(super) fn new(body: B, mask: Arc<SecretMask>) -> Self {
        Self { body: Box::pin(body), mask, held: Vec::new(), trailers: None, ended: false }
    }
}

impl<B: Body<Data = Bytes>> Body for MaskedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        while !this.ended {
            let frame = match ready!(this.body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    this.ended = true;
                    break;
                }
            };
            match frame.into_data() {
                Ok(data) => {
                    this.held.extend_from_slice(&data);
                    this.mask.cover(&mut this.held);
                    let settled = this.held.len() - this.mask.begun(&this.held);
                    if settled > 0 {
                        let rest = this.held.split_off(settled);
                        let settled = std::mem::replace(&mut this.held, rest);
                        return Poll::Ready(Some(Ok(Frame::data(settled.into()))));
                    }
                }
                Err(frame) => {
                    if let Ok(mut trailers) = frame.into_trailers() {
                        this.mask.headers(&mut trailers);
                        this.trailers = Some(trailers);
                    }
                    this.ended = true;
                }
            }
        }
        if !this.held.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.held).into()))));
        }
        Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.trailers.is_none() && (self.ended || self.body.is_end_stream())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, StreamBody};
    use std::convert::Infallible;

    const TOKEN: &str = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";

    fn mask() -> Arc<SecretMask> {
        Arc::new(SecretMask::new(&SecretValue::new(TOKEN.to_owned())))
    }

    async fn passed(pieces: Vec<Vec<u8>>) -> Vec<u8> {
        let frames = pieces.into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
        let body = MaskedBody::new(StreamBody::new(futures_util::stream::iter(frames)), mask());
        body.collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn a_body_is_cut_anywhere_and_the_secret_is_never_in_it() {
        let whole = format!("no method /bot{TOKEN}/x, 1102015 is no bot").into_bytes();
        let expected = whole.len();
        for at in 0..whole.len() {
            let passed = passed(vec![whole[..at].to_vec(), whole[at..].to_vec()]).await;
            let text = String::from_utf8(passed).unwrap();
            assert!(text.len() == expected && !text.contains("AAHdq"), "{at}: {text}");
            assert!(text.starts_with("no method /bot[token]***") && text.ends_with(", 1102015 is no bot"), "{text}");
        }
        let bytes = passed(whole.iter().map(|byte| vec![*byte]).collect()).await;
        assert!(!String::from_utf8(bytes).unwrap().contains("AAHdq"));
        let other = vec![0_u8, 255, b'1', b'1', b'0'];
        assert_eq!(passed(vec![other.clone()]).await, other, "what is no secret stays as it is");
    }

    #[test]
    fn each_way_to_write_it_is_known() {
        let (id, key) = TOKEN.split_once(':').unwrap();
        let hex = data_encoding::HEXLOWER.encode(TOKEN.as_bytes());
        let base64 = data_encoding::BASE64.encode(format!("x{TOKEN}").as_bytes());
        for text in [TOKEN.to_owned(), format!("{id}%3A{key}"), format!("{id}%3a{key}"), key.to_owned(), hex] {
            let shown = mask().text(&format!("got {text}."));
            assert!(shown.starts_with("got ") && shown.ends_with("*.") && !shown.contains(&key[..12]), "{shown}");
        }
        assert!(mask().text(&base64).contains("[token]"));
        let mut headers = HeaderMap::new();
        headers.insert("location", format!("/bot{TOKEN}/").parse().unwrap());
        mask().headers(&mut headers);
        assert!(!headers["location"].to_str().unwrap().contains(key));
        assert_eq!(mask().text(id), id, "the bot's number is no secret");
    }
}

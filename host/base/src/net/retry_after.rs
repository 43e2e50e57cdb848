//! The time that a server asks to wait before the next request.

use std::time::{Duration, SystemTime};

use http::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use jiff::fmt::rfc2822;

/// The longest accepted wait. A server that asks for more is considered down.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Milliseconds; sent by OpenAI and Azure in addition to the standard header, which has only seconds.
const MILLISECONDS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Returns the wait of `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3). A date is compared with the response's
/// `Date`, because the clock of a small computer may be wrong; without one, with `now`.
pub fn read(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let number = |name| header(headers, name)?.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
    let seconds = match number(&MILLISECONDS) {
        Some(milliseconds) => milliseconds / 1_000.0,
        None => match number(&RETRY_AFTER) {
            Some(seconds) => seconds,
            None => {
                let then = date(headers, &RETRY_AFTER)?;
                let now = date(headers, &DATE).or_else(|| seconds_since_1970(now))?;
                (then - now).max(0.0)
            }
        },
    };
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST))
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<f64> {
    // A date with a wrong day of the week is still clear.
    let parser = rfc2822::DateTimeParser::new().relaxed_weekday(true);
    Some(parser.parse_timestamp(header(headers, name)?.trim()).ok()?.as_second() as f64)
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn seconds_since_1970(time: SystemTime) -> Option<f64> {
    Some(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], millis: Option<u64>) {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = read(
            &headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
                .collect(),
            now,
        );
        assert_eq!(read, millis.map(Duration::from_millis), "{headers:?}");
    }

    #[test]
    fn seconds_and_dates_are_read() {
        check(&[], None);
        check(&[("retry-after", "7")], Some(7_000));
        check(&[("retry-after", " 1.5 ")], Some(1_500));
        check(&[("retry-after-ms", "250"), ("retry-after", "1")], Some(250));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], Some(10_000));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")], Some(0));
        check(
            &[("retry-after", "Sun, 06 Nov 2044 08:50:37 GMT"), ("date", "Sun, 06 Nov 2044 08:49:37 GMT")],
            Some(60_000),
        );
    }

    #[test]
    fn nonsense_is_no_wait_and_a_long_wait_is_a_day() {
        for nonsense in ["", "soon", "-3", "NaN", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            check(&[("retry-after", nonsense)], None);
        }
        for long in ["999999999", "1e300", "inf", "Sun, 06 Nov 2094 08:49:37 GMT"] {
            check(&[("retry-after", long)], Some(24 * 60 * 60 * 1_000));
        }
    }
}

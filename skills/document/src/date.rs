//! Dates as ISO 8601.

/// 100-nanosecond steps since 1601, as Windows counts them.
pub fn from_filetime(steps: u64) -> String {
    const TO_1970: i64 = 11_644_473_600;
    let seconds = i64::try_from(steps / 10_000_000).unwrap_or(i64::MAX) - TO_1970;
    let (days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", clock / 3_600, clock / 60 % 60, clock % 60)
}

/// Year, month and day from days since 1970, after Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_of_windows_is_written() {
        assert_eq!(from_filetime(133_590_240_000_000_000), "2024-05-01T08:00:00Z");
        assert_eq!(from_filetime(0), "1601-01-01T00:00:00Z");
    }
}

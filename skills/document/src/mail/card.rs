//! vCard and iCalendar: contacts, appointments and tasks.

use crate::charset;
use crate::document::Document;
use crate::error::Result;
use crate::kind::Kind;
use crate::out::{Out, Style};
use crate::read::Reading;

/// Components that are read.
const COMPONENTS: usize = 50_000;

/// Reads cards or a calendar: a heading and a list for each contact, appointment or task.
pub fn read(kind: Kind, bytes: &[u8], reading: &Reading) -> Result<Document> {
    let text = charset::decode(bytes, None);
    let mut out = Out::new(reading.style, reading.pages.clone(), reading.limit);
    let mut name = String::new();
    let mut stack: Vec<Component> = Vec::new();
    let mut count = 0;
    for line in unfold(&text) {
        let Some(property) = Property::parse(&line) else { continue };
        match property.name.as_str() {
            "BEGIN" if stack.len() < 8 => stack.push(Component::new(&property.value)),
            "END" => {
                let Some(component) = stack.pop() else { continue };
                if component.kind == "VALARM"
                    || component.kind == "VTIMEZONE"
                    || stack.iter().any(|outer| outer.kind == "VTIMEZONE")
                {
                    continue;
                }
                if component.kind == "VCALENDAR" {
                    name = component.value("X-WR-CALNAME");
                } else {
                    count += 1;
                    component.write(&mut out);
                }
            }
            _ => {
                if let Some(component) = stack.last_mut()
                    && component.properties.len() < 2_000
                {
                    component.properties.push(property);
                }
            }
        }
        if out.is_full() || count >= COMPONENTS {
            break;
        }
    }
    // A cut file may end inside one.
    if let Some(component) = stack.pop().filter(|component| component.kind != "VCALENDAR") {
        count += 1;
        component.write(&mut out);
    }
    let mut document = Document::new(kind, out);
    document.fact("title", name);
    document.fact(if kind == Kind::Vcard { "contacts" } else { "entries" }, count.to_string());
    Ok(document)
}

/// Lines, with those that begin with white space put behind the one before.
fn unfold(text: &str) -> impl Iterator<Item = String> {
    let mut lines = text.lines().peekable();
    std::iter::from_fn(move || {
        let mut line = lines.next()?.to_owned();
        // Quoted-printable lines of vCard 2.1 go on after `=`.
        let quoted = line.to_ascii_uppercase().contains("QUOTED-PRINTABLE");
        while let Some(next) = lines.peek() {
            if line.len() > 1 << 20 {
                break;
            }
            if quoted && line.ends_with('=') {
                line.pop();
                line.push_str(next);
            } else if let Some(more) = next.strip_prefix([' ', '\t']) {
                line.push_str(more);
            } else {
                break;
            }
            lines.next();
        }
        Some(line)
    })
}

#[derive(Debug)]
struct Property {
    name: String,
    /// Values of `TYPE`, and other words.
    types: Vec<String>,
    zone: String,
    value: String,
}

impl Property {
    fn parse(line: &str) -> Option<Self> {
        let mut quoted = false;
        let colon = line.find(|c| {
            quoted ^= c == '"';
            c == ':' && !quoted
        })?;
        let (head, value) = (&line[..colon], &line[colon + 1..]);
        let mut words = head.split(';');
        let name = words.next()?.rsplit('.').next()?.trim().to_ascii_uppercase();
        let mut property = Self { name, types: Vec::new(), zone: String::new(), value: String::new() };
        let (mut quoted_printable, mut charset_label) = (false, None);
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or(("TYPE", word));
            match key.to_ascii_uppercase().as_str() {
                "TZID" => property.zone = value.trim_matches('"').to_owned(),
                "CHARSET" => charset_label = Some(value.to_owned()),
                "ENCODING" | "TYPE" if value.eq_ignore_ascii_case("quoted-printable") => quoted_printable = true,
                "ENCODING" => {}
                "TYPE" => property.types.extend(value.trim_matches('"').split(',').map(str::to_ascii_lowercase)),
                "CN" => property.types.push(value.trim_matches('"').to_owned()),
                _ => {}
            }
        }
        property.types.retain(|kind| !matches!(kind.as_str(), "pref" | "internet" | "voice" | "x-internet"));
        property.value = match quoted_printable {
            true => charset::decode(&charset::unescaped(value, b'='), charset_label.as_deref()),
            false => value.to_owned(),
        };
        Some(property)
    }
}

/// Resolves `\n`, `\,` and `\;`.
fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n' | 'N') => result.push('\n'),
                Some(other) => result.push(other),
                None => {}
            },
            c => result.push(c),
        }
    }
    result
}

/// Fields between semicolons, the empty ones left out.
fn fields(text: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match c {
            ';' if !escaped => fields.push(String::new()),
            c => {
                if let Some(field) = fields.last_mut() {
                    field.push(c);
                }
            }
        }
        escaped = c == '\\' && !escaped;
    }
    fields.iter().map(|field| unescape(field).trim().to_owned()).filter(|field| !field.is_empty()).collect()
}

/// `20240501T100000Z` as `2024-05-01 10:00 UTC`.
fn moment(property: &Property) -> String {
    let value = property.value.trim();
    let digits = |range: std::ops::Range<usize>| {
        value.get(range).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let (Some(year), Some(month), Some(day)) = (digits(0..4), digits(4..6), digits(6..8)) else {
        return value.to_owned();
    };
    let mut text = format!("{year}-{month}-{day}");
    if let (Some(hour), Some(minute)) = (digits(9..11), digits(11..13)) {
        text.push_str(&format!(" {hour}:{minute}"));
        if value.ends_with('Z') {
            text.push_str(" UTC");
        } else if !property.zone.is_empty() {
            text.push_str(&format!(" {}", property.zone));
        }
    }
    text
}

#[derive(Debug)]
struct Component {
    kind: String,
    properties: Vec<Property>,
}

impl Component {
    fn new(kind: &str) -> Self {
        Self { kind: kind.trim().to_ascii_uppercase(), properties: Vec::new() }
    }

    fn value(&self, name: &str) -> String {
        let found = self.properties.iter().find(|property| property.name == name);
        found.map(|property| unescape(&property.value)).unwrap_or_default()
    }

    fn write(&self, out: &mut Out) {
        let name = match self.kind.as_str() {
            "VCARD" => {
                let structured = self.properties.iter().find(|property| property.name == "N").map(|name| {
                    let mut words = fields(&name.value);
                    let family = usize::from(!words.is_empty());
                    words.rotate_left(family);
                    words.join(" ")
                });
                Some(self.value("FN")).filter(|name| !name.is_empty()).or(structured).unwrap_or_default()
            }
            _ => self.value("SUMMARY"),
        };
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        out.heading(2, if name.is_empty() { "without a name" } else { &name });
        for property in &self.properties {
            self.write_property(property, out);
        }
    }

    fn write_property(&self, property: &Property, out: &mut Out) {
        let join = |separator: &str| fields(&property.value).join(separator);
        let person = || {
            let address = property.value.strip_prefix("mailto:").or_else(|| property.value.strip_prefix("MAILTO:"));
            let address = address.unwrap_or(&property.value);
            match property.types.first() {
                Some(name) => format!("{name} <{address}>"),
                None => address.to_owned(),
            }
        };
        let (label, value) = match property.name.as_str() {
            "TEL" => ("phone", property.value.trim_start_matches("tel:").to_owned()),
            "EMAIL" => ("mail", property.value.clone()),
            "ADR" => ("address", join(", ")),
            "ORG" => ("organization", join(", ")),
            "TITLE" | "ROLE" => ("role", unescape(&property.value)),
            "BDAY" => ("birthday", moment(property)),
            "ANNIVERSARY" => ("anniversary", moment(property)),
            "URL" => ("link", property.value.clone()),
            "NOTE" => ("note", unescape(&property.value)),
            "NICKNAME" => ("nickname", unescape(&property.value)),
            "CATEGORIES" => ("categories", unescape(&property.value)),
            "IMPP" => ("chat", property.value.clone()),
            "DTSTART" => ("from", moment(property)),
            "DTEND" => ("to", moment(property)),
            "DUE" => ("due", moment(property)),
            "COMPLETED" => ("completed", moment(property)),
            "DURATION" => ("duration", property.value.clone()),
            "RRULE" => ("repeats", property.value.to_ascii_lowercase().replace(';', ", ").replace('=', " ")),
            "EXDATE" => ("except", moment(property)),
            "LOCATION" => ("place", unescape(&property.value)),
            "DESCRIPTION" => ("description", unescape(&property.value)),
            "STATUS" => ("status", property.value.to_ascii_lowercase()),
            "PRIORITY" => ("priority", property.value.clone()),
            "ORGANIZER" => ("organizer", person()),
            "ATTENDEE" => ("attendee", person()),
            _ => return,
        };
        let value = value.trim().replace('\n', if out.style() == Style::Markdown { "  \n" } else { "\n" });
        if value.is_empty() {
            return;
        }
        let kinds = match property.name.as_str() {
            "TEL" | "EMAIL" | "ADR" if !property.types.is_empty() => format!(" ({})", property.types.join(", ")),
            _ => String::new(),
        };
        out.item(0, "-", &format!("{label}{kinds}: {value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contacts_are_read() {
        let card = "BEGIN:VCARD\r\nVERSION:2.1\r\nN:Lovelace;Ada;;;\r\nTEL;CELL:+1 2\r\nitem1.EMAIL;TYPE=INTERNET,work:a@b\r\n\
            NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=utf-8:Gr=C3=BC=\r\n=C3=9Fe\r\nADR:;;1 Road\\, 2;Town;;;\r\nPHOTO:abc\r\nEND:VCARD\r\n";
        let document = read(Kind::Vcard, card.as_bytes(), &Reading::default()).unwrap();
        assert_eq!(
            document.parts[0].text,
            "## Ada Lovelace\n\n- phone (cell): +1 2\n- mail (work): a@b\n- note: Grüße\n- address: 1 Road, 2, Town"
        );
    }

    #[test]
    fn appointments_are_read() {
        let calendar = "BEGIN:VCALENDAR\nX-WR-CALNAME:Home\nBEGIN:VTIMEZONE\nBEGIN:STANDARD\nDTSTART:19700101T000000\nEND:STANDARD\nEND:VTIMEZONE\n\
            BEGIN:VEVENT\nSUMMARY:Dinner\nDTSTART;TZID=Europe/Oslo:20240501T190000\nDTEND:20240501T210000Z\nDESCRIPTION:a long\n  line\nRRULE:FREQ=WEEKLY;BYDAY=MO\nATTENDEE;CN=\"Ada: L\":mailto:a@b\n\
            BEGIN:VALARM\nDESCRIPTION:x\nEND:VALARM\nEND:VEVENT\nEND:VCALENDAR\n";
        let document = read(Kind::Calendar, calendar.as_bytes(), &Reading::default()).unwrap();
        assert_eq!(document.find_fact("title"), Some("Home"));
        assert_eq!(
            document.parts[0].text,
            "## Dinner\n\n- from: 2024-05-01 19:00 Europe/Oslo\n- to: 2024-05-01 21:00 UTC\n- description: a long line\n- repeats: freq weekly, byday mo\n- attendee: Ada: L <a@b>"
        );
    }
}

use crate::scene::Color;
use serde::Deserialize;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    #[default]
    Light,
    Dark,
}

/// The colours of a theme.
#[derive(Debug)]
pub struct Palette {
    pub background: Color,
    pub text: Color,
    pub muted: Color,
    pub grid: Color,
    pub axis: Color,
    pub series: [Color; SERIES],
}

/// More lines than this cannot be told apart.
pub const SERIES: usize = 8;

impl Theme {
    /// After Okabe and Ito, "Color Universal Design": the series can be told apart with any kind of colour blindness.
    /// The dark theme has them lighter, so that all reach 4.5 : 1 against its background.
    pub fn palette(self) -> Palette {
        match self {
            Self::Light => Palette {
                background: Color::hex(0xFFFFFF),
                text: Color::hex(0x1A1D21),
                muted: Color::hex(0x666E78),
                grid: Color::hex(0xE7E9EC),
                axis: Color::hex(0x8A929C),
                series: [0x0B6FB4, 0xD55E00, 0x009E73, 0xC7659A, 0xE39B00, 0x4AA9E0, 0x6A51A3, 0x4D4D4D]
                    .map(Color::hex),
            },
            Self::Dark => Palette {
                background: Color::hex(0x14171B),
                text: Color::hex(0xF2F4F6),
                muted: Color::hex(0x9BA4AF),
                grid: Color::hex(0x2A3038),
                axis: Color::hex(0x6C7580),
                series: [0x5BB0EE, 0xFF8B4D, 0x35C79B, 0xE89BC6, 0xF5BC42, 0xA3D5F5, 0xB5A2E8, 0xC4C9CF]
                    .map(Color::hex),
            },
        }
    }
}

impl Palette {
    /// The colour of a series for text, which needs more contrast than a line.
    pub fn label(&self, series: usize) -> Color {
        self.series[series % SERIES].mixed(self.text, 0.18)
    }
}

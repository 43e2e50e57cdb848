//! The cost of calls.

use kiso_plan::limits::Usage;

/// The prices of a model, as listed by its provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price {
    /// Millionths of a US dollar for a million prompt tokens.
    pub input: u64,
    /// The same for tokens in the provider's cache; `None` if they cost the same as others.
    pub cached: Option<u64>,
    /// The same for a million tokens of the answer.
    pub output: u64,
}

impl Price {
    /// Returns the cost in millionths of a US dollar, rounded up, so that a cap on cost is never exceeded unnoticed.
    pub fn cost(self, usage: Usage) -> u64 {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let input = part(usage.input_tokens - cached, self.input) + part(cached, self.cached.unwrap_or(self.input));
        let total = input.saturating_add(part(usage.output_tokens, self.output));
        u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// Returns `usage` with its cost, unless the provider reported the cost.
    pub fn charge(self, usage: Usage) -> Usage {
        let cost_micros = if usage.cost_micros == 0 { self.cost(usage) } else { usage.cost_micros };
        Usage { cost_micros, ..usage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input_tokens: u64, output_tokens: u64, cost_micros: u64) -> Usage {
        Usage { input_tokens, output_tokens, cost_micros, ..Usage::default() }
    }

    #[test]
    fn costs_are_rounded_up_once() {
        // 0.25 and 2 dollars.
        let price = Price { input: 250_000, cached: None, output: 2_000_000 };
        for (input, output, micros) in
            [(0, 0, 0), (1, 0, 1), (4, 0, 1), (5, 0, 2), (1_000_000, 1_000_000, 2_250_000), (2, 1, 3), (1, 1, 3)]
        {
            assert_eq!(price.cost(usage(input, output, 0)), micros, "{input} {output}");
        }
        assert_eq!(
            Price { input: u64::MAX, cached: None, output: u64::MAX }.cost(usage(u64::MAX, u64::MAX, 0)),
            u64::MAX
        );
        assert_eq!(Price::default().cost(usage(9, 9, 0)), 0);
    }

    #[test]
    fn what_was_kept_has_a_price_of_its_own() {
        let usage = Usage { cached_tokens: 800, ..usage(1_000, 0, 0) };
        let price = Price { input: 1_000_000, cached: Some(100_000), output: 0 };
        assert_eq!(price.cost(usage), 200 + 80);
        assert_eq!(Price { cached: None, ..price }.cost(usage), 1_000, "as much as others where nobody says");
        // More cached tokens than tokens are an error of the provider.
        assert_eq!(price.cost(Usage { cached_tokens: 5_000, ..usage }), 100);
    }

    #[test]
    fn what_the_provider_says_is_taken() {
        let price = Price { cached: None, input: 1_000_000, output: 1_000_000 };
        assert_eq!(price.charge(usage(10, 10, 7)), usage(10, 10, 7));
        assert_eq!(price.charge(usage(10, 10, 0)), usage(10, 10, 20));
    }
}

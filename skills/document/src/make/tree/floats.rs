//! Floats as boxes beside one another.

use std::rc::Rc;

use super::{Content, Node, Role};
use crate::make::css::style::{Display, Items, Justify, Side, Style};
use crate::make::css::value::Length;

/// Makes a row of floats that follow one another. A single one has the text after it at its side.
pub fn group(nodes: Vec<Node>, style: &Style) -> Vec<Node> {
    if nodes.iter().all(|node| node.style.float == Side::None) {
        return nodes;
    }
    let mut out = Vec::new();
    let mut rest = nodes.into_iter().peekable();
    while let Some(node) = rest.next() {
        if node.style.float == Side::None {
            out.push(node);
            continue;
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        push(node, &mut left, &mut right);
        while let Some(next) = rest.next_if(|next| next.style.float != Side::None && !next.style.clears) {
            push(next, &mut left, &mut right);
        }
        let mut middle = Vec::new();
        if left.len() + right.len() == 1 && !fills(left.first().or(right.first())) {
            // Headings with what they are about stay together at the side.
            while let Some(next) = rest.next_if(|next| !next.style.clears && next.style.float == Side::None) {
                let goes_on = matches!(next.role, Role::Heading(_));
                middle.push(next);
                if !goes_on {
                    break;
                }
            }
        }
        out.push(row(left, middle, right, style));
    }
    out
}

fn push(mut node: Node, left: &mut Vec<Node>, right: &mut Vec<Node>) {
    let side = node.style.float;
    Rc::make_mut(&mut node.style).float = Side::None;
    if side == Side::Left {
        left.push(node);
    } else {
        // The first one is the outermost.
        right.insert(0, node);
    }
}

fn fills(node: Option<&Node>) -> bool {
    node.is_some_and(|node| matches!(node.style.width, Length::Percent(percent) if percent > 90.0))
}

fn row(left: Vec<Node>, middle: Vec<Node>, right: Vec<Node>, style: &Style) -> Node {
    let mut outer = style.child();
    outer.display = Display::Flex;
    let flex = Rc::make_mut(&mut outer.flex);
    flex.items = Items::Start;
    flex.wraps = true;
    flex.justify = if !left.is_empty() && !right.is_empty() {
        Justify::Between
    } else if right.is_empty() {
        Justify::Start
    } else {
        Justify::End
    };
    let mut cells = left;
    if !middle.is_empty() {
        let mut own = style.child();
        own.display = Display::Block;
        let flex = Rc::make_mut(&mut own.flex);
        flex.grow = 1.0;
        flex.basis = Length::Points(0.0);
        cells.push(Node::new(own, Content::Blocks(middle)));
    }
    cells.extend(right);
    Node::new(outer, Content::Blocks(cells))
}

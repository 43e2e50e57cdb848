# The lines that log --graph draws beside commits.
PADDING, SKIP, PRE_COMMIT, COMMIT, POST_MERGE, COLLAPSING = range(6)


class Graph:
    """Columns of commits that are still to come. `update` takes the next commit; each line is asked for after that."""

    def __init__(self):
        self.commit, self.parents, self.mark = None, [], "*"
        self.width = self.row = self.at = self.last_at = 0
        self.state = self.last_state = PADDING
        self.layout, self.edges, self.last_edges = 0, 0, 0
        self.columns, self.coming, self.mapping, self.old_mapping = [], [], [], []

    @property
    def finished(self):
        return self.state == PADDING

    def update(self, commit, parents, mark="*"):
        """`parents` are those that will be shown."""
        self.commit, self.parents, self.mark = commit, parents, mark
        self.last_at = self.at
        self._arrange()
        self.row = 0
        self.state = SKIP if self.state != PADDING else PRE_COMMIT if self._needs_room() else COMMIT

    def _arrange(self):
        self.columns, self.coming = self.coming, []
        self.mapping = [-1] * max(2 * (len(self.columns) + len(self.parents)), 2)
        self.width, self.last_edges, self.edges = 0, self.edges, 0
        seen = False
        for at in range(len(self.columns) + 1):
            if at == len(self.columns):
                if seen:
                    break
                commit = self.commit
            else:
                commit = self.columns[at]
            if commit == self.commit:
                seen, self.at, self.layout = True, at, -1
                for parent in self.parents:
                    self._insert(parent, at)
                if not self.parents:
                    self.width += 2
            else:
                self._insert(commit, -1)
        while len(self.mapping) > 1 and self.mapping[-1] < 0:
            self.mapping.pop()

    def _insert(self, commit, at):
        if commit in self.coming:
            to = self.coming.index(commit)
        else:
            to = len(self.coming)
            self.coming.append(commit)
        if len(self.parents) > 1 and at > -1 and self.layout == -1:
            far = at - to
            shift = 2 * far - 3 if far > 1 else 1
            self.layout = 0 if far > 0 else 1
            self.edges = len(self.parents) + self.layout - 2
            place = self.width + (self.layout - 1) * shift
            self.width += 2 * self.layout
        elif self.edges > 0 and to == self.mapping[self.width - 2]:
            place = self.width - 2
            self.edges = -1
        else:
            place = self.width
            self.width += 2
        self.mapping[place] = to

    def _dashed(self):
        return len(self.parents) + self.layout - 3

    def _needs_room(self):
        return len(self.parents) >= 3 and self.at < len(self.columns) - 1 and self.row < self._dashed() * 2

    def _set(self, state):
        self.last_state, self.state = self.state, state

    def _settled(self):
        return all(to < 0 or to == place // 2 for place, to in enumerate(self.mapping))

    def line(self):
        """The next line, and whether it is that of the commit."""
        state = self.state
        if state == PADDING:
            text = "| " * len(self.coming)
        elif state == SKIP:
            text = "..."
            self._set(PRE_COMMIT if self._needs_room() else COMMIT)
        elif state == PRE_COMMIT:
            text = self._room()
        elif state == COMMIT:
            text = self._commit()
        elif state == POST_MERGE:
            text = self._merge()
        else:
            text = self._collapse()
        return text.ljust(self.width), state == COMMIT

    def padding(self):
        """A line for what stands before the commit or behind it."""
        if self.state != COMMIT:
            return self.line()[0]
        text = ""
        for column in self.columns:
            text += "|" + (" " * ((len(self.parents) - 2) * 2) if column == self.commit and len(self.parents) > 2 else " ")
        self.last_state = PADDING
        return text.ljust(self.width)

    def _each(self):
        """The columns, and the commit where it has none."""
        for at, column in enumerate(self.columns):
            yield at, column
        if self.commit not in self.columns:
            yield len(self.columns), self.commit

    def _room(self):
        text, seen = "", False
        for at, column in enumerate(self.columns):
            if column == self.commit:
                seen = True
                text += "|" + " " * self.row
            elif seen and self.row == 0:
                text += "\\" if self.last_state == POST_MERGE and self.last_at < at else "|"
            else:
                text += "\\" if seen else "|"
            text += " "
        self.row += 1
        if not self._needs_room():
            self._set(COMMIT)
        return text

    def _commit(self):
        text, seen = "", False
        for at, column in self._each():
            if column == self.commit:
                seen = True
                text += self.mark
                if len(self.parents) > 2:
                    text += "".join("-." if i == self._dashed() - 1 else "--" for i in range(self._dashed()))
            elif seen and self.edges > 1:
                text += "\\"
            elif seen and self.edges == 1:
                bent = self.last_state == POST_MERGE and self.last_edges > 0 and self.last_at < at
                text += "\\" if bent else "|"
            elif self.last_state == COLLAPSING and self._came(at):
                text += "/"
            else:
                text += "|"
            text += " "
        self._set(POST_MERGE if len(self.parents) > 1 else PADDING if self._settled() else COLLAPSING)
        return text

    def _came(self, at):
        old, new = self.old_mapping, self.mapping
        return 2 * at + 1 < len(old) and old[2 * at + 1] == at and (new[2 * at] if 2 * at < len(new) else -1) < at

    def _merge(self):
        text, seen, under = "", False, False
        for at, column in self._each():
            if column == self.commit:
                seen, shape = True, self.layout
                for number in range(len(self.parents)):
                    text += "/|\\"[shape]
                    if shape == 2:
                        if self.edges > 0 or number < len(self.parents) - 1:
                            text += " "
                    else:
                        shape += 1
                if self.edges == 0:
                    text += " "
            elif seen:
                text += "\\ " if self.edges > 0 else "| "
            else:
                text += "|"
                if self.layout != 0 or at != self.at - 1:
                    text += "_" if under else " "
            if column == self.parents[0]:
                under = True
        self._set(PADDING if self._settled() else COLLAPSING)
        return text

    def _collapse(self):
        old, new = self.mapping, [-1] * len(self.mapping)
        flat, edge, edge_to = False, -1, -1
        for place, to in enumerate(old):
            if to < 0:
                continue
            if to * 2 == place:
                new[place] = to
            elif new[place - 1] < 0:
                new[place - 1] = to
                if edge == -1:
                    edge, edge_to = place, to
                    for near in range(to * 2 + 3, place - 2, 2):
                        new[near] = to
            elif new[place - 1] != to:
                new[place - 2] = to
                if edge == -1:
                    edge, edge_to = place - 1, to
                    for near in range(to * 2 + 3, place - 2, 2):
                        new[near] = to
        self.old_mapping = list(new)
        if new[-1] < 0:
            new.pop()
        text = ""
        for place, to in enumerate(new):
            if to < 0:
                text += " "
            elif to * 2 == place:
                text += "|"
            elif to == edge_to and place != edge - 1:
                if place != to * 2 + 3:
                    new[place] = -1
                flat = True
                text += "_"
            else:
                if flat and place < edge:
                    new[place] = -1
                text += "/"
        self.mapping = new
        if self._settled():
            self._set(PADDING)
        return text

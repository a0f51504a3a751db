"""What all widgets have: a static form, a line for errors, and work in the background that can be stopped."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import ipywidgets as ipw

from lakekit.errors import LakeError
from lakekit.notebook.running import Task, run_cancellable
from lakekit.session.failures import spark_failure
from lakekit.widgets import parts

if TYPE_CHECKING:
    from lakekit.lake import Lake

T = TypeVar("T")


@dataclass(frozen=True)
class _Work:
    """Something to do in the background; what is quiet is not announced."""

    doing: str
    work: Callable[[], Any]
    then: Callable[[Any], None]
    quiet: bool


class LakeWidget(ipw.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A widget of lakekit: shown by the last line of a cell, or by ``display(…)``.

    A saved notebook keeps its static form, an HTML table or two of what it showed when it was displayed;
    `static()` returns that of now.
    """

    def __init__(self, lake: Lake, title: str) -> None:
        """Shows nothing but a title yet; subclasses end with `_show()`."""
        super().__init__()
        self.add_class("lakekit-widget")
        self._lake = lake
        self._title = title
        self._message = ipw.HTML()
        self._end = button("Cancel", "End what runs in the background")
        self._end.on_click(lambda _: self._cancel())
        self._end.layout.display = "none"
        self._steering: list[Any] = []
        self._lock = threading.RLock()
        self._waiting: dict[str, _Work] = {}
        self._thread: threading.Thread | None = None
        self._task: Task[Any] | None = None
        self._failure: parts.Failure | None = None
        self._closed = False

    # Its static form

    def static(self) -> Static:
        """Returns what the widget shows now, as plain HTML that needs no kernel and no scripts."""
        shown: list[parts.Part] = [parts.Heading(self._title), *self._parts()]
        return Static([*shown, self._failure] if self._failure else shown)

    @abstractmethod
    def _parts(self) -> Sequence[parts.Part]:
        """Returns the pieces of the static form."""

    def _repr_mimebundle_(self, **_asked: Any) -> dict[str, Any]:
        static = self.static()
        shown = super()._repr_mimebundle_() or {}
        return {**shown, "text/html": static._repr_html_(), "text/plain": repr(static)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._title!r})"

    # What subclasses use

    def _show(self, *children: Any, steering: Iterable[Any] = ()) -> None:
        """Puts the widget together; `steering` is what cannot be used while something runs."""
        self._steering = list(steering)
        line = ipw.HBox([self._message, self._end], layout=ipw.Layout(align_items="center"))
        heading = ipw.HTML(parts.Heading(self._title)._repr_html_())
        self.children = (heading, *children, line)

    @property
    def busy(self) -> bool:
        """Whether something runs in the background."""
        return self._thread is not None

    def _on(self, source: Any, handler: Callable[[], None], trait: str | None = None) -> None:
        """Calls a handler on a click, or when a trait changes; whatever it raises is shown."""

        def safely(_event: Any) -> None:
            try:
                handler()
            except Exception as error:
                self._fail(error, self._title)

        if trait is None:
            source.on_click(safely)
        else:
            source.observe(safely, trait)

    def _run(
        self, doing: str, work: Callable[[], T], then: Callable[[T], None], *, quiet: bool = False
    ) -> None:
        """Does something long in a thread, and hands the result on; waiting work of the same name is replaced."""
        with self._lock:
            self._waiting[doing] = _Work(doing, work, then, quiet)
            if self._thread is None and not self._closed:
                if not quiet:
                    self._set_busy(True)
                self._thread = threading.Thread(target=self._work, name="lakekit-widget", daemon=True)
                self._thread.start()

    def _now(self, doing: str, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Does something at once, for the first look; a failure is shown like any other."""
        try:
            then(run_cancellable(self._lake.spark, work))
        except Exception as error:
            self._fail(error, doing)

    def _say(self, part: parts.Part | None) -> None:
        self._failure = part if isinstance(part, parts.Failure) else None
        self._message.value = part._repr_html_() if part is not None else ""

    def _fail(self, error: BaseException, doing: str) -> None:
        if not isinstance(error, Exception):
            self._say(parts.Failure(f"{doing}: cancelled."))
            return
        self._say(parts.Failure.of(short_error(error, doing)))

    # Its thread

    def _work(self) -> None:
        while True:
            with self._lock:
                name = next(iter(self._waiting), None)
                if name is None or self._closed:
                    self._thread = self._task = None
                    self._set_busy(False)
                    return
                work = self._waiting.pop(name)
            self._one(work)

    def _one(self, asked: _Work) -> None:
        try:
            if not asked.quiet:
                self._say(parts.Note(f"{asked.doing} …"))
            self._task = Task(self._lake.spark, asked.work)
            self._task.start()
            self._task.done.wait()
            self._task.close()
            result = self._task.result()
            if not self._closed:
                if not asked.quiet:
                    self._say(None)
                asked.then(result)
        except BaseException as error:
            if self._end.disabled:
                self._say(parts.Failure(f"{asked.doing}: cancelled."))
            else:
                self._fail(error, asked.doing)

    def _set_busy(self, busy: bool) -> None:
        self._end.disabled = False
        self._end.layout.display = "" if busy else "none"
        for each in self._steering:
            each.disabled = busy

    def _cancel(self) -> None:
        with self._lock:
            self._waiting.clear()
            self._end.disabled = True
            task = self._task
        if task is not None:
            threading.Thread(target=task.cancel, name="lakekit-widget-cancel", daemon=True).start()

    def close(self) -> None:
        """Ends the widget, and what it does in the background."""
        self._closed = True
        self._cancel()
        for child in _all_below(self):
            child.close()
        super().close()


class Static:
    """The static form of a widget: HTML without scripts, or text."""

    def __init__(self, shown: Sequence[parts.Part]) -> None:
        """Keeps the pieces as they are now."""
        self._parts = tuple(shown)

    def _repr_html_(self) -> str:
        return parts.as_html(self._parts)

    def __repr__(self) -> str:
        return parts.as_text(self._parts)


def button(text: str, tooltip: str, *, style: str = "") -> ipw.Button:
    """Returns a button as wide as its text; the tooltip says what it does."""
    return ipw.Button(
        description=text,
        tooltip=tooltip,
        button_style=style,
        layout=ipw.Layout(width="auto", flex="0 0 auto"),
    )


def row(*children: Any) -> ipw.HBox:
    """Returns widgets beside one another; they wrap where the page is narrow."""
    return ipw.HBox(list(children), layout=ipw.Layout(flex_flow="row wrap", align_items="center"))


def scrolled(child: Any, height: str = "320px") -> ipw.Box:
    """Returns a box that scrolls when its content is higher or wider than it."""
    return ipw.Box([child], layout=ipw.Layout(max_height=height, overflow="auto", display="block"))


def short_error(error: Exception, doing: str) -> LakeError:
    """Returns what to show of any error: message and hint, never a stack."""
    if isinstance(error, LakeError):
        return error
    return spark_failure(error, doing)


def _all_below(widget: Any) -> Iterable[Any]:
    for child in getattr(widget, "children", ()):
        yield from _all_below(child)
        with suppress(Exception):
            yield child

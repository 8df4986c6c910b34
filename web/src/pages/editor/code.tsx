// The text field for documents. It lives in a shadow root: there its style sheets are objects, which the
// policy of the page allows, and not elements, which it does not.

import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic as Mark } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Text } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useImperativeHandle, useRef, type Ref } from "react";

import type { Diagnostic } from "../../api/types";
import { offered } from "./complete";

export interface Field {
  /** Puts the cursor at a place, from 1, and shows it. */
  goTo(line: number, column: number): void;
}

interface Props {
  text: string;
  change(text: string): void;
  /** What Ctrl-S does. */
  save(): void;
  diagnostics: Diagnostic[];
  label: string;
  ref?: Ref<Field>;
}

export default function Code({ text, change, save, diagnostics, label, ref }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const first = useRef(text);
  // The view is made once; what it calls is what was given last.
  const calls = useRef({ change, save });
  calls.current = { change, save };

  useEffect(() => {
    if (!host.current) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          lineNumbers(),
          lintGutter(),
          highlightSpecialChars(),
          history(),
          drawSelection(),
          indentOnInput(),
          indentUnit.of("  "),
          bracketMatching(),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          highlightSelectionMatches(),
          yaml(),
          syntaxHighlighting(COLOURS),
          autocompletion({ override: [completions] }),
          keymap.of([
            { key: "Mod-s", preventDefault: true, run: () => (calls.current.save(), true) },
            ...completionKeymap,
            ...defaultKeymap,
            ...historyKeymap,
            ...searchKeymap,
            ...lintKeymap,
          ]),
          EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) calls.current.change(update.state.doc.toString());
          }),
          LOOKS,
        ],
      }),
    });
    view.current = made;
    return () => {
      view.current = null;
      made.destroy();
    };
  }, [label]);

  useEffect(() => {
    const shown = view.current;
    if (!shown || shown.state.doc.toString() === text) return;
    shown.dispatch({ changes: { from: 0, to: shown.state.doc.length, insert: text } });
  }, [text]);

  useEffect(() => {
    const shown = view.current;
    if (shown) shown.dispatch(setDiagnostics(shown.state, diagnostics.map((one) => mark(shown.state.doc, one))));
  }, [diagnostics]);

  useImperativeHandle(ref, () => ({
    goTo(line, column) {
      const shown = view.current;
      if (!shown) return;
      const at = position(shown.state.doc, line, column);
      shown.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
      shown.focus();
    },
  }));

  return <div ref={host} className="editor" />;
}

/** A place of a text, which may have become shorter since it was looked at. Columns count characters. */
function position(doc: Text, line: number, column: number): number {
  const found = doc.line(Math.min(Math.max(line, 1), doc.lines));
  const before = [...found.text].slice(0, Math.max(column, 1) - 1).join("");
  return found.from + before.length;
}

function mark(doc: Text, found: Diagnostic): Mark {
  const from = position(doc, found.line, found.column);
  const line = doc.lineAt(from);
  const rest = /^[\w./"'-]+/.exec(line.text.slice(from - line.from))?.[0].length ?? 1;
  return {
    from,
    to: Math.min(from + rest, line.to),
    severity: found.severity,
    source: found.code,
    message: found.help ? `${found.message}\n${found.help}` : found.message,
  };
}

function completions(context: CompletionContext): CompletionResult | null {
  const offer = offered(context.state.doc.toString(), context.pos);
  if (!offer || (offer.from === context.pos && !context.explicit)) return null;
  return {
    from: offer.from,
    validFor: /^[\w.-]*$/,
    options: offer.words.map(({ label, detail }) => ({
      label,
      type: offer.keys ? "property" : "enum",
      ...(offer.keys ? { apply: `${label}: ` } : {}),
      ...(detail ? { info: detail } : {}),
    })),
  };
}

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.content], color: "var(--completed)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--faint)", fontStyle: "italic" },
  { tag: [tags.keyword, tags.atom, tags.bool, tags.number], color: "var(--waiting)" },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: "var(--faint)" },
]);

const LOOKS = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--surface)", fontSize: "14px" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--faint)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 8%, transparent)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)",
  },
  ".cm-searchMatch, .cm-selectionMatch": { backgroundColor: "var(--mark)" },
  ".cm-tooltip, .cm-panels": {
    backgroundColor: "var(--surface)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    maxWidth: "36rem",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-ink)" },
  // The editor's own marks are pictures in the style sheet, which the policy of the page refuses.
  ".cm-lint-marker": { content: "none" },
  ".cm-lint-marker-error, .cm-lint-marker-warning": { fontFamily: "var(--font)", fontWeight: "700", textAlign: "center" },
  ".cm-lint-marker-error": { content: "'✕'", color: "var(--failed)" },
  ".cm-lint-marker-warning": { content: "'!'", color: "var(--cancelled)" },
  ".cm-lintRange": { backgroundImage: "none", textDecoration: "underline wavy 1px" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecorationColor: "var(--failed)" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecorationColor: "var(--cancelled)" },
  ".cm-lintRange-active": { backgroundColor: "var(--mark)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", fontFamily: "var(--font)" },
  ".cm-textfield, .cm-button": {
    backgroundColor: "var(--surface)",
    backgroundImage: "none",
    color: "var(--ink)",
    border: "1px solid var(--line)",
  },
});

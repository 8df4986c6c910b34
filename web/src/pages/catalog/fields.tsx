// The fields of a run dialog, each as its kind asks for.

import { useQuery } from "@tanstack/react-query";
import { useId } from "react";

import type { FormField } from "../../api/catalog";
import { stringify, text } from "../../api/json";
import { operations } from "../../api/operations";
import { fitsGlob, hasChildren, initial, placeOf, type Typed } from "./form";

interface Shared {
  typed: Typed;
  errors: Record<string, string>;
  change(place: string, text: string): void;
}

export function Fields({ fields, path = [], ...shared }: { fields: FormField[]; path?: string[] } & Shared) {
  return (
    <>
      {fields.map((field) =>
        hasChildren(field) ? (
          <fieldset key={field.name}>
            <legend>{field.name}</legend>
            {field.description && <p className="faint small">{field.description}</p>}
            <Fields fields={field.children} path={[...path, field.name]} {...shared} />
          </fieldset>
        ) : (
          <One key={field.name} field={field} path={[...path, field.name]} {...shared} />
        ),
      )}
    </>
  );
}

function One({ field, path, typed, errors, change }: { field: FormField; path: string[] } & Shared) {
  const id = useId();
  const place = placeOf(path);
  const value = typed[place] ?? initial(field);
  const wrong = errors[place];
  const given = {
    id,
    "aria-invalid": wrong !== undefined,
    "aria-describedby": `${id}-more`,
  };
  const write = (event: { target: { value: string } }) => change(place, event.target.value);
  return (
    <div className="field">
      {field.kind === "boolean" ? (
        <label className="row">
          <input {...given} type="checkbox" checked={value === "true"} onChange={(event) => change(place, String(event.target.checked))} />
          {field.name}
        </label>
      ) : (
        <>
          <label htmlFor={id}>{field.name}</label>
          <Input field={field} given={given} value={value} write={write} />
        </>
      )}
      <p id={`${id}-more`} className="small">
        {wrong && (
          <span className="wrong" role="alert">
            {wrong}{" "}
          </span>
        )}
        <span className="faint">{[field.description, KINDS[field.kind]].filter(Boolean).join(" · ")}</span>
      </p>
    </div>
  );
}

const KINDS: Record<string, string> = {
  integer: "a whole number",
  number: "a number",
  object: "an object in JSON",
  array: "a list in JSON",
  null: "JSON, or any text",
};

interface InputProps {
  field: FormField;
  given: Record<string, unknown> & { id: string };
  value: string;
  write(event: { target: { value: string } }): void;
}

function Input({ field, given, value, write }: InputProps) {
  if (field.secret) return <input {...given} type="password" autoComplete="off" value={value} onChange={write} />;
  if (field.kind === "enum") {
    const options = field.options ?? [];
    const isAmong = options.some((option) => stringify(option) === value);
    return (
      <select {...given} value={value} onChange={write}>
        {!isAmong && <option value={value}>{value}</option>}
        {options.map((option) => (
          <option key={stringify(option)} value={stringify(option)}>
            {text(option) ?? stringify(option)}
          </option>
        ))}
      </select>
    );
  }
  if (field.kind === "object" || field.kind === "array" || value.includes("\n")) {
    return <textarea {...given} rows={4} spellCheck={false} value={value} onChange={write} />;
  }
  if (field.credential_glob !== null) {
    return <Credential glob={field.credential_glob} given={given} value={value} write={write} />;
  }
  const isNumber = field.kind === "integer" || field.kind === "number";
  return <input {...given} type="text" inputMode={isNumber ? "decimal" : undefined} value={value} onChange={write} />;
}

/** The name of a credential: those that fit are offered, any may be written. */
function Credential({ glob, given, value, write }: Omit<InputProps, "field"> & { glob: string }) {
  const { data } = useQuery(operations.credentials());
  const list = `${given.id}-names`;
  return (
    <>
      <input {...given} type="text" list={list} value={value} onChange={write} />
      <datalist id={list}>
        {(data ?? []).filter((one) => fitsGlob(one.name, glob)).map((one) => (
          <option key={one.name} value={one.name} />
        ))}
      </datalist>
    </>
  );
}

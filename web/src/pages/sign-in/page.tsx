// Where people show who they are: with a token, or at an identity provider.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent } from "react";

import { ask } from "../../api/client";
import { query } from "../../api/queries";
import { signIn } from "../../api/session";
import { Link, useRouter, useSearch } from "../../shell/router";
import { Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { within } from "./back";
import { codeIn, trade } from "./link";
import { begin, finish, type AuthMode } from "./oidc";

export default function SignInPage() {
  const [search] = useSearch();
  const mode = useQuery({ ...query(["auth mode"], (signal) => ask<AuthMode>("/api/auth/mode", { signal })), staleTime: 0 });
  const back = within(search.get("back"));
  const returned = search.has("code") || search.has("error");
  // A link of `noetl dev` carries a code behind `#`, which no request sends along.
  const [linked] = useState(() => codeIn(location.hash));
  return (
    <div className="narrow">
      <h1>Sign in</h1>
      {returned && <Returned />}
      {linked !== null && <Linked code={linked} back={back} />}
      {mode.error && <Failure of="The server does not say how to sign in" error={mode.error} retry={mode.refetch} />}
      {!mode.data && !mode.error && <Loading of="how to sign in" />}
      {mode.data?.mode === "open" && (
        <p>
          This server requires no sign-in. <Link to={back}>Continue</Link>
        </p>
      )}
      {mode.data?.mode === "oidc" && <Provider mode={mode.data} back={back} />}
      {mode.data && mode.data.mode !== "open" && <Token back={back} isOnly={mode.data.sign_in === null} />}
    </div>
  );
}

/** Trades what the provider sent along, once. */
function Returned() {
  const { go } = useRouter();
  const [search] = useSearch();
  const [failure, setFailure] = useState<unknown>(null);
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    finish(search)
      .then(({ token, back }) => {
        signIn(token);
        go(within(back), { replace: true });
      })
      .catch((error: unknown) => {
        setFailure(error);
        // A code is valid once, so it is removed from the address: a reload must not send it again.
        history.replaceState(null, "", "/sign-in");
      });
  }, [search, go]);
  return failure === null ? <Loading of="who you are" /> : <Failure of="Signing in failed" error={failure} />;
}

/** Trades the code of a link, once. */
function Linked({ code, back }: { code: string; back: string }) {
  const { go } = useRouter();
  const [failure, setFailure] = useState<unknown>(null);
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    history.replaceState(null, "", "/sign-in");
    trade(code)
      .then((token) => {
        signIn(token);
        go(back, { replace: true });
      })
      .catch(setFailure);
  }, [code, back, go]);
  return failure === null ? <Loading of="your session" /> : <Failure of="Couldn’t sign in with the link" error={failure} />;
}

function Provider({ mode, back }: { mode: AuthMode; back: string }) {
  const [failure, setFailure] = useState<unknown>(null);
  const place = mode.sign_in;
  if (place === null) return mode.trouble === null ? null : <p className="failure">{mode.trouble}; sign in with a token of this server meanwhile.</p>;
  return (
    <>
      <button type="button" className="primary" onClick={() => begin(place, back).catch(setFailure)}>
        Sign in at {new URL(place.authorization_endpoint).host}
      </button>
      {failure !== null && <Failure of="Signing in failed" error={failure} />}
    </>
  );
}

function Token({ back, isOnly }: { back: string; isOnly: boolean }) {
  const { go } = useRouter();
  const [value, setValue] = useState("");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const token = value.trim();
    setBusy(true);
    setFailure(null);
    try {
      await ask("/api/whoami", { token });
      signIn(token);
      go(back, { replace: true });
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <form className="stack" onSubmit={submit}>
      <label>
        {isOnly ? "Token" : "Or with a token"}
        <input type="password" autoComplete="current-password" value={value} onChange={(event) => setValue(event.target.value)} required />
      </label>
      <button type="submit" className={isOnly ? "primary" : ""} disabled={busy}>
        {busy ? "Asking…" : "Sign in with the token"}
      </button>
      {failure !== null && <Failure of="Signing in failed" error={failure} />}
      <p className="small faint">
        <code>noetl token link</code> prints a link that signs you in; <code>noetl token create --role operator</code> makes a token. It is kept in this tab and
        forgotten with it.
      </p>
    </form>
  );
}

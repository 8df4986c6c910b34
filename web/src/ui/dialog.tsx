// A dialog over the page. The browser keeps the focus in it and closes it with Escape.

import { useEffect, useId, useRef, useState, type ReactNode } from "react";

import { Failure } from "./failure";

interface DialogProps {
  title: string;
  close(): void;
  children: ReactNode;
}

/** A dialog that is open for as long as it is drawn. */
export function Dialog({ title, close, children }: DialogProps) {
  const shown = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = shown.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={shown}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** What the button that does it says. */
  action: string;
  children: ReactNode;
  close(): void;
  /** Does it; a failure is shown, and the dialog stays. */
  run(): Promise<unknown>;
}

/** Asks before something that cannot be taken back lightly. */
export function Confirm({ title, action, children, close, run }: ConfirmProps) {
  const [failure, setFailure] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    setFailure(null);
    try {
      await run();
      close();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} close={close}>
      <div className="stack">
        <div>{children}</div>
        {failure !== null && <Failure of="It was not done" error={failure} />}
        <div className="line">
          <button type="button" className="danger" onClick={go} disabled={busy}>
            {action}
          </button>
          <button type="button" onClick={close}>
            Leave it
          </button>
        </div>
      </div>
    </Dialog>
  );
}

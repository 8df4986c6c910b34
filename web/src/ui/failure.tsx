// Errors that say what to do.

import { Component, type ErrorInfo, type ReactNode } from "react";

import { shown } from "../api/client";
import { Link } from "../shell/router";

/** Why something is not there, what to do about it, and a button that tries again. */
export function Failure({ of, error, retry }: { of: string; error: unknown; retry?: (() => void) | undefined }) {
  const failure = shown(error);
  return (
    <div className="failure" role="alert">
      <p>
        <strong>{of}:</strong> {failure.message}
      </p>
      <p className="advice">
        {failure.advice} {failure.status === 401 && <Link to={signInFrom()}>Sign in</Link>}
      </p>
      {retry && (
        <button type="button" onClick={() => retry()}>
          Try again
        </button>
      )}
    </div>
  );
}

/** The page to sign in, which leads back here. */
export function signInFrom(): string {
  return `/sign-in?back=${encodeURIComponent(location.pathname + location.search)}`;
}

/** Keeps a mistake of one part of a page from taking the rest with it. */
export class Guard extends Component<{ of: string; children: ReactNode }, { failure: unknown }> {
  override state: { failure: unknown } = { failure: null };

  static getDerivedStateFromError(failure: unknown) {
    return { failure };
  }

  override componentDidCatch(failure: unknown, info: ErrorInfo) {
    console.error(failure, info.componentStack);
  }

  override render() {
    if (this.state.failure === null) return this.props.children;
    return <Failure of={this.props.of} error={this.state.failure} retry={() => this.setState({ failure: null })} />;
  }
}

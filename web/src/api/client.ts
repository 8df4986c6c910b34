// One way to ask the server: ids as text, no digit lost, every failure an `ApiError` that says what
// to do.

import { field, parse, stringify, text, type Json } from "./json";
import { sayRefused, token } from "./session";

/** How long an answer may take before the page says that there is none. */
const PATIENCE_MS = 30_000;

/** Why a call came to nothing, in words for people. */
export class ApiError extends Error {
  constructor(
    /** The HTTP status; 0 when nothing answered. */
    readonly status: number,
    /** The server's stable code, or one of ours: `unreachable`, `no_answer`, `unreadable`. */
    readonly code: string,
    message: string,
    /** The whole answer, if it was JSON. */
    readonly body?: Json,
  ) {
    super(message);
    this.name = "ApiError";
  }

  /** What the reader can do about it. */
  get advice(): string {
    if (this.status < 0) return "Load the page again; if it comes back, the console of the browser says where it happened.";
    if (this.status === 0) return "Check that the server runs and that this machine reaches it, then try again.";
    if (this.status === 401) return "Sign in with a token that is good.";
    if (this.status === 403) return "Ask an administrator of this server for a token with the required role.";
    if (this.status === 404) return "It may have been removed; go back to the list.";
    if (this.status === 409) return "It changed meanwhile; look at it again.";
    if (this.status === 429 || this.status === 503) return "The server is busy or starting; try again in a moment.";
    if (this.status >= 500) return "The server's own log says more; try again.";
    return "Change what the message names, then try again.";
  }

  /** Whether asking the same again may help by itself. */
  get passes(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Query parameters; what has no value is left out. */
export type Params = Record<string, string | number | boolean | null | undefined>;

/** The address of a call, with ids asked for as text. */
export function address(path: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  query.set("ids", "string");
  return `${path}?${query}`;
}

/** The headers of every call; with another token than that of the session, if one is given. */
export function headers(other?: string): Record<string, string> {
  const shown = other ?? token();
  return shown === null ? {} : { authorization: `Bearer ${shown}` };
}

export interface Call {
  method?: string;
  params?: Params | undefined;
  body?: Json | undefined;
  signal?: AbortSignal | undefined;
  /** How long to wait; a large result takes longer than a list. */
  patience?: number;
  /** Another token than that of the session. */
  token?: string;
}

/** Asks, and gives the answer as JSON. */
export async function ask<T = Json>(path: string, call: Call = {}): Promise<T> {
  const said = await fetched(path, call);
  const answer = await said.text().catch(() => {
    throw new ApiError(0, "no_answer", "The answer of the server was cut off.");
  });
  return read(answer, said.status) as T;
}

/** Asks, and gives the answer as the text it is. */
export async function askText(path: string, call: Call = {}): Promise<string> {
  return (await fetched(path, call)).text();
}

/** Sends a body. */
export function send<T = Json>(path: string, body: Json = {}, call: Call = {}): Promise<T> {
  return ask<T>(path, { method: "POST", ...call, body });
}

async function fetched(path: string, call: Call): Promise<Response> {
  const { method = "GET", params, body, signal, patience = PATIENCE_MS } = call;
  const timeout = AbortSignal.timeout(patience);
  const own = headers(call.token);
  const init: RequestInit = {
    method,
    headers: body === undefined ? own : { ...own, "content-type": "application/json" },
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    ...(body === undefined ? {} : { body: stringify(body) }),
  };
  let said: Response;
  try {
    said = await fetch(address(path, params), init);
  } catch (failure) {
    if (signal?.aborted) throw failure;
    if (timeout.aborted) {
      throw new ApiError(0, "no_answer", `The server did not answer within ${patience / 1000} s.`);
    }
    throw new ApiError(0, "unreachable", "The server cannot be reached.");
  }
  if (!said.ok) throw await refusal(said);
  return said;
}

function read(answer: string, status: number): Json {
  if (answer === "") return null;
  try {
    return parse(answer);
  } catch {
    throw new ApiError(status, "unreadable", "The server answered something that is not JSON.");
  }
}

/** The error that an answer tells of. */
export async function refusal(said: Response): Promise<ApiError> {
  if (said.status === 401) sayRefused();
  const answer = await said.text().catch(() => "");
  let body: Json | undefined;
  try {
    body = parse(answer);
  } catch {
    body = undefined;
  }
  const message = text(field(body, "message")) ?? text(field(body, "error"));
  const code = text(field(body, "code")) ?? `http_${said.status}`;
  return new ApiError(said.status, code, message || `The server answered ${said.status} ${said.statusText}.`, body);
}

/** Any failure as one that can be shown. */
export function shown(failure: unknown): ApiError {
  if (failure instanceof ApiError) return failure;
  const message = failure instanceof Error ? failure.message : String(failure);
  return new ApiError(-1, "page", `This page failed: ${message}`);
}

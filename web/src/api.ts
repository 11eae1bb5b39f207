/** Asking the server: typed by its OpenAPI, same origin, problems told as what, which and what next. */
import { signal } from "@preact/signals";
import type { paths } from "./api.gen";
import { root } from "./url";

/** The session has ended, or there never was one: the shell then shows how to log in. */
export const loginNeeded = signal(false);

export type Wrong = { at: string; problem: string };

export class Problem extends Error {
  override readonly name = "Problem";
  constructor(
    readonly status: number,
    /** What went wrong, and with which. */
    readonly what: string,
    /** What to do about it; may be empty. */
    readonly next = "",
    /** One for each field that is wrong. */
    readonly errors: readonly Wrong[] = [],
  ) {
    super(next ? `${what} – ${next}` : what);
  }
}

type Method = "get" | "post" | "put" | "patch" | "delete";
type With<M extends Method> = { [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never }[keyof paths];
type Operation<P extends keyof paths, M extends Method> = paths[P] extends { [K in M]: infer O } ? O : never;
type Json<R> = R extends { content: { "application/json": infer B } } ? B : undefined;
type Answers<O> = O extends { responses: infer R } ? R : never;
type Answered<O> =
  Answers<O> extends infer R
    ? (200 extends keyof R ? Json<R[200]> : never) | (201 extends keyof R ? Json<R[201]> : never)
    : never;
/** What a call answers: `Got<"/api/v1/runs">`. */
export type Got<P extends keyof paths, M extends Method = "get"> = Answered<Operation<P, M>>;

type Value = string | number | boolean | null | undefined;
export type Asked = {
  /** For the braces of the path. */
  path?: Record<string, string | number>;
  query?: Record<string, Value | readonly Value[]>;
  body?: unknown;
  signal?: AbortSignal | undefined;
};

export function get<P extends With<"get">>(path: P, asked: Asked = {}): Promise<Got<P, "get">> {
  return call("GET", path, asked) as Promise<Got<P, "get">>;
}
export function post<P extends With<"post">>(path: P, asked: Asked = {}): Promise<Got<P, "post">> {
  return call("POST", path, asked) as Promise<Got<P, "post">>;
}
export function patch<P extends With<"patch">>(path: P, asked: Asked = {}): Promise<Got<P, "patch">> {
  return call("PATCH", path, asked) as Promise<Got<P, "patch">>;
}
export function put<P extends With<"put">>(path: P, asked: Asked = {}): Promise<Got<P, "put">> {
  return call("PUT", path, asked) as Promise<Got<P, "put">>;
}
export function remove<P extends With<"delete">>(path: P, asked: Asked = {}): Promise<undefined> {
  return call("DELETE", path, asked) as Promise<undefined>;
}

/** The address of a call, with its braces filled and its query. */
export function address(path: string, asked: Asked = {}): string {
  const filled = path.replace(/\{(\w+)(?::path)?\}/g, (_, name: string) =>
    encodeURIComponent(String(asked.path?.[name] ?? "")),
  );
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(asked.query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) if (one != null) params.append(name, String(one));
  }
  const text = params.toString();
  return root + filled + (text ? `?${text}` : "");
}

async function call(method: string, path: string, asked: Asked): Promise<unknown> {
  let answer: Response;
  try {
    answer = await fetch(address(path, asked), {
      method,
      credentials: "same-origin",
      headers: {
        accept: "application/json",
        ...(asked.body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: asked.body === undefined ? null : JSON.stringify(asked.body),
      signal: asked.signal ?? null,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(
      0,
      "the server does not answer",
      "it may be restarting, or the network may be down; this page keeps trying",
    );
  }
  if (answer.ok) return answer.status === 204 ? undefined : await answer.json();
  if (answer.status === 401) loginNeeded.value = true;
  throw await problemOf(answer);
}

export async function problemOf(answer: Response): Promise<Problem> {
  try {
    const told = (await answer.json()) as { detail?: string; hint?: string; errors?: Wrong[] };
    return new Problem(answer.status, told.detail ?? answer.statusText, told.hint ?? "", told.errors ?? []);
  } catch {
    return new Problem(answer.status, `the server answered ${answer.status}`, "");
  }
}

/** A caught error in words, or null for a call that was given up on purpose. */
export function inWords(error: unknown): { what: string; next: string } | null {
  if (error instanceof DOMException && error.name === "AbortError") return null;
  if (error instanceof Problem) return { what: error.what, next: error.next };
  return { what: error instanceof Error ? error.message : String(error), next: "" };
}

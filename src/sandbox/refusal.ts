/** An answer other than 200 that the document names: status, code and a sentence. */
export class RefusedRequest extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** Builds the refusal for a parameter that is unknown, repeated, or has a value that is not supported. */
export function invalidParameter(message: string): RefusedRequest {
  return new RefusedRequest(400, 'invalid_parameter', message)
}

/** Builds the refusal for an unknown path or id. */
export const notFound = (message: string): RefusedRequest => new RefusedRequest(404, 'not_found', message)

/** Reads the query of a request: only the named parameters, each at most once and never empty. */
export function readQuery(query: URLSearchParams, allowed: readonly string[]): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>()
  for (const [name, value] of query) {
    if (!allowed.includes(name)) throw invalidParameter(`unknown parameter: ${name}`)
    if (parameters.has(name)) throw invalidParameter(`repeated parameter: ${name}`)
    if (value === '') throw invalidParameter(`empty value of parameter: ${name}`)
    parameters.set(name, value)
  }
  return parameters
}

/** Reads the `limit` of a request: 1 to 500, default 100. */
export function readLimit(parameters: ReadonlyMap<string, string>): number {
  const text = parameters.get('limit')
  if (text === undefined) return 100
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > 500) throw invalidParameter('limit must be a whole number from 1 to 500')
  return limit
}

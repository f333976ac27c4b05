import { expect } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { answerMetrics } from '../../src/sandbox/metrics.ts'

type MetricsEnv = Parameters<typeof answerMetrics>[1]

/** The built-in catalogue. */
export const catalogue = loadCatalogue()
/** Its endpoints. */
export const endpoints = [...catalogue.endpoints.values()]
/** Unix seconds of an ISO date. */
export const at = (text: string): number => Date.parse(text) / 1000
/** The provider's clock unless a test sets another. */
export const now = at('2025-11-20T13:47:00Z')

/** The provider unless a test changes it. */
export const base: MetricsEnv = { catalogue, seed: 7, key: 'secret', now: () => now }

/** One request with the key in the header. */
export function ask(
  path: string,
  query: Record<string, string> | string = {},
  env: Partial<MetricsEnv> = {},
): Response {
  const search = new URLSearchParams(query).toString()
  const request = new Request(`http://127.0.0.1:1/v1/metrics/${path}?${search}`, { headers: { 'X-Api-Key': 'secret' } })
  return answerMetrics(request, { ...base, ...env })
}

/** A point as JSON has it. */
export type Point = { t: number; v?: unknown; computed_at?: number }

/** The points of a request that has to succeed. */
export async function points(...args: Parameters<typeof ask>): Promise<Point[]> {
  const response = ask(...args)
  expect(response.status, JSON.stringify(args.slice(0, 2))).toBe(200)
  return (await response.json()) as Point[]
}

import { usage } from '../../base/errors.ts'
import type { Provider } from './entry.ts'
import type { Ledger } from './ledger.ts'

/**
 * Combines the provider that the lake has recorded with the one that the job found. A different provider is refused;
 * `moved` accepts a new address, but never synthetic data alongside real data.
 */
export function agreeProvider(recorded: Provider | null, answering: Provider, moved: boolean): Provider {
  if (!recorded) return answering
  if (recorded.synthetic !== answering.synthetic)
    throw usage('this lake holds data of another provider', {
      expected: nameOf(recorded),
      got: nameOf(answering),
      next: 'name another folder with --data: made-up and real data never share a lake',
    })
  for (const api of ['metrics', 'registry'] as const) {
    const before = recorded[api]
    const now = answering[api]
    if (before === undefined || now === undefined || before === now || moved) continue
    throw usage(`this lake holds ${api} data of another provider`, {
      expected: before,
      got: now,
      next: 'name another folder with --data, or say --provider-moved if it is the same provider at a new address',
    })
  }
  return { ...recorded, ...answering }
}

/**
 * Identifies the provider at an address of an API: the sandbox by the name that it reports, any other provider by its
 * address.
 */
export function providerAt(api: 'metrics' | 'registry', url: string, sandbox: string | null): Provider {
  const { origin, pathname } = new URL(url)
  const name = sandbox === null ? `${origin}${pathname}`.replace(/\/+$/, '') : `sandbox:${sandbox}`
  return { [api]: name, synthetic: sandbox !== null }
}

function nameOf(provider: Provider): string {
  const kind = provider.synthetic ? 'synthetic' : 'real'
  const who = [provider.metrics, provider.registry].filter((name) => name !== undefined)
  return [kind, ...who].join(' ')
}

/** Returns the provider that the lake has recorded; a lake without a commit has no files to rewrite. */
export function providerOf(ledger: Ledger): Provider {
  const { provider } = ledger.head()
  if (!provider) throw new RangeError('an empty lake has nothing to rewrite')
  return provider
}

import { gravestOf, LakeError } from '../errors.ts'
import { verdictOf } from './summary.ts'
import type { RegistryVerified } from './verify.ts'

/** The error that a verify of the registry ends with; null where the provider says what the lake holds. */
export function registryVerdict(summary: RegistryVerified): LakeError | null {
  return gravestOf([contradicted(summary), verdictOf(summary), failed(summary)])
}

function contradicted({ findings }: RegistryVerified): LakeError | null {
  if (findings.length === 0) return null
  const next =
    'nothing held was changed: read registry_findings; pitlake registry snapshot takes over what the provider says now'
  return new LakeError('integrity', { subject: `${findings.length} contradictions of the registry`, next })
}

function failed({ failures }: RegistryVerified): LakeError | null {
  if (failures.length === 0) return null
  const subject = `${failures.length} addresses of the registry got no usable answer`
  return new LakeError('incomplete', { subject, got: failures[0]?.reason, next: 'run the same command again' })
}

import { additions, recordsOf, tables, viewAt } from '../../src/sandbox/registry/state.ts'

/** The truth at an instant: table → id → record; the kind that no document lists stands under `committees`. */
export function registryStateAt(env: { seed: number; scale: Parameters<typeof viewAt>[0]['scale'] }, at: number) {
  const view = viewAt(env, at)
  const kinds = [...Object.entries(tables), ['committees', 'committee'] as const]
  return new Map(
    kinds.map(([table, type]) => {
      const records = [...recordsOf(view, type)]
      return [table, new Map(records.map((record) => [record['id'] as string, { ...record }]))]
    }),
  )
}

/** The fields added to the records of a type by the instant; a stored row lacks them. */
export function addedFields(type: string, at: number): readonly string[] {
  return additions.filter((addition) => addition.type === type && addition.from <= at).map(({ field }) => field)
}

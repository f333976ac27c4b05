import { isObject } from '../json.ts'
import type { Resource } from '../catalog/catalogue.ts'
import { readLimits } from '../net/limits.ts'
import { readList, readPage, readSnapshot, type Snapshot } from '../registry/bodies.ts'
import { type Fields, isFields, usually } from '../registry/json.ts'
import { eventKeys, pageKeys, referenceKey, snapshotKeys, yamlOf } from './registry-keys.ts'
import { speaksAgainst, type Assessment, holds, type Judges, mergeYaml, unknown, type Yaml } from './finding.ts'
import { type HeardAnswer, whyNot } from './hear.ts'
import { errorsHold, resetHolds } from './metrics-rows.ts'
import type { RegistrySeen } from './registry.ts'

/** The judges of the registry API. */
export const registryJudges: Judges<RegistrySeen> = {
  'fields of a record': fieldsHold,
  references: referencesHold,
  'layout of a snapshot': (seen) =>
    withSnapshot(seen, ({ records }, body) => {
      const missing = [...seen.resources.keys()].filter((name) => !records.has(name))
      const place = isObject(body['data'])
        ? 'under `data`'
        : isObject(body['snapshot'])
          ? 'under `snapshot`'
          : 'at the top'
      const counts = [...records].map(([name, held]) => `${held.size} ${name}`).join(', ')
      return holds(`${place}: ${counts}${missing.length === 0 ? '' : `; no ${missing.join(', ')}`}`)
    }),
  deployments: (seen) =>
    withSnapshot(seen, ({ disagreeing }, body) => {
      const place = ['data', 'snapshot'].map((key) => body[key]).find(isObject) ?? body
      const products: unknown = place['products']
      const inside =
        Array.isArray(products) && products.some((one) => isObject(one) && Array.isArray(one['deployments']))
      const own = Array.isArray(place['deployments'])
      const where = [own ? 'an array of their own' : '', inside ? 'within products' : ''].filter((text) => text !== '')
      return where.length === 0
        ? unknown('the snapshot has none')
        : holds(`${where.join(' and ')}${disagreeing.length === 0 ? '' : `; ${disagreeing.length} disagree`}`)
    }),
  events: eventsHold,
  'cursor at the tail': (seen) =>
    withPage(seen, (body) => {
      const yaml = yamlOf(pageKeys(body), seen.resources)
      if (typeof body['has_more'] !== 'boolean')
        return speaksAgainst(`a page with ${Object.keys(body).join(', ')}, without \`has_more\``, yaml)
      if (body['has_more']) return unknown('the feed goes on: its tail was not reached')
      const cursor = body['next_cursor']
      if (cursor === undefined && Object.keys(body).some((key) => /cursor|next/i.test(key)))
        return speaksAgainst(
          `a cursor under ${Object.keys(body).find((key) => /cursor|next/i.test(key))} instead of \`next_cursor\``,
          yaml,
        )
      return holds(
        typeof cursor === 'string' ? 'a cursor' : `${cursor === null ? 'null' : 'absent'}: the last one is kept`,
      )
    }),
  '`limit` of a page': limitHolds,
  'entity types': (seen) =>
    withPage(seen, (_, bytes) => {
      const read = readPage(bytes, seen.resources)
      if (!read.ok) return unknown(read.reason)
      const types = new Map(read.value.events.map(({ type, resource }) => [type, resource]))
      if (types.size === 0) return unknown('no event came')
      const odd = [...types].filter(([, resource]) => resource === null).map(([type]) => type)
      return holds(
        `${[...types.keys()].join(', ')}${odd.length === 0 ? '' : `; not known, kept raw: ${odd.join(', ')}`}`,
      )
    }),
  'when an event is known': () => unknown('no answer can tell: it is the poll that counts'),
  'body of an error': (seen) => errorsHold(answers(seen)),
  limits: (seen) => {
    const heard = answers(seen)
    if (heard.length === 0) return unknown('nothing was answered')
    const reset = resetHolds(heard)
    if (reset.verdict === 'contradicted') return reset
    const signs = heard.map(({ headers, at }) => readLimits(headers, at * 1000)).find(({ limit }) => limit !== null)
    if (signs === undefined) return unknown('no header tells them; a refusal does')
    const daily = signs.dailyRemaining === null ? '' : `, ${signs.dailyRemaining} left of the day`
    return holds(`headers say ${signs.limit} in their window${daily}`)
  },
  'conditional requests': ({ list, again }) => {
    if (list?.outcome.kind !== 'body') return unknown(whyNot(list))
    if (list.outcome.etag === null) return holds('no `ETag` came: everything is asked for whole')
    if (again === null) return unknown(whyNot(again))
    if (again.outcome.kind === 'not_modified') return holds('an `ETag` came, and 304 to it')
    return holds(`an \`ETag\` came, and ${whyNot(again)} to it: the body comes each time`)
  },
  rhythm: () => unknown('only weeks of polls show it: pitlake watch, then registry status'),
}

function answers({ list, again, snapshot, changes, unlimited }: RegistrySeen): HeardAnswer[] {
  return [list, again, snapshot, changes, unlimited].filter((heard) => heard !== null)
}

type Body = Readonly<Record<string, unknown>>

function withSnapshot(
  { snapshot, held, resources }: RegistrySeen,
  judge: (read: Snapshot, body: Body) => Assessment,
): Assessment {
  if (snapshot === null && held !== null) return holds(`the lake holds a snapshot of ${held}`)
  if (!snapshot?.bytes) return unknown(whyNot(snapshot))
  const read = readSnapshot(snapshot.bytes, resources)
  if (!isFields(snapshot.body)) return speaksAgainst('no object')
  const body = usually(snapshot.body, resources)
  if (read.ok) return judge(read.value, body)
  const evidence = `${read.reason} (it has ${Object.keys(snapshot.body).slice(0, 10).join(', ')})`
  return speaksAgainst(evidence, yamlOf(snapshotKeys(body, resources), resources))
}

function withPage(
  { changes, unlimited, resources }: RegistrySeen,
  judge: (body: Fields, bytes: Uint8Array) => Assessment,
): Assessment {
  const page = unlimited ?? changes
  if (!page?.bytes) return unknown(whyNot(page))
  return isFields(page.body)
    ? judge(usually(page.body, resources), page.bytes)
    : speaksAgainst('a page that is no object')
}

/** The records of the list, or why there are none. */
function recordsOf({ list, resources }: RegistrySeen): readonly Body[] | Assessment {
  const [resource] = resources.values()
  if (!list?.bytes || resource === undefined) return unknown(whyNot(list))
  const read = readList(list.bytes, resource)
  if (!read.ok) {
    if (!isFields(list.body)) return speaksAgainst(read.reason)
    const arrays = Object.entries(list.body).filter(([, value]) => Array.isArray(value))
    const yaml = yamlOf(arrays.length === 1 ? [['data', arrays[0]?.[0] ?? '']] : [], resources)
    return speaksAgainst(`${read.reason} (the list has ${Object.keys(list.body).join(', ')})`, yaml)
  }
  const records = read.value.records.filter(isFields)
  return records.length === 0 ? unknown('the list is empty') : records
}

function fieldsHold(seen: RegistrySeen): Assessment {
  const records = recordsOf(seen)
  const [resource] = seen.resources.values()
  if ('verdict' in records || resource === undefined) return records as Assessment
  const lacking = Object.entries(resource.fields).filter(
    ([, { keys }]) => !keys.some((key) => records.some((one) => key in one)),
  )
  return holds(
    lacking.length === 0
      ? `all named fields of ${resource.name}`
      : `${resource.name} without ${lacking.map(([name]) => name).join(', ')}: those columns stay null`,
  )
}

function referencesHold(seen: RegistrySeen): Assessment {
  return withSnapshot(seen, ({ records }) => {
    const broken = [...seen.resources.values()].flatMap((resource) => lost(resource, records))
    const words = broken.map(({ words: said }) => said).join(', ')
    const parts = broken.map(({ yaml }) => yaml).filter((yaml) => yaml !== null)
    return broken.length === 0
      ? holds('every reference is there under one of its names')
      : speaksAgainst(words, parts.length === 0 ? null : mergeYaml(parts))
  })
}

/** References that no record of the resource has, with the setting that mends each. */
function lost(resource: Resource, all: Snapshot['records']): { words: string; yaml: Yaml | null }[] {
  const { name, fields } = resource
  const records = [...(all.get(name)?.values() ?? [])].map(({ text }) => JSON.parse(text) as Fields)
  return Object.entries(fields).flatMap(([field, { keys, to }]) => {
    const ids = to === null ? undefined : all.get(to)
    if (ids === undefined || records.length === 0 || keys.some((key) => records.some((one) => key in one))) return []
    const own = referenceKey(resource, records, ids)
    const words = `no ${field} in ${name}${own === null ? '' : `: it is ${own}`}`
    return [{ words, yaml: own === null ? null : { registry: { fields: { [name]: { [field]: own } } } } }]
  })
}

function eventsHold(seen: RegistrySeen): Assessment {
  const { resources } = seen
  return withPage(seen, (body, bytes) => {
    const arrays = Object.entries(body).filter(([, value]) => Array.isArray(value))
    const names = arrays.map(([name]) => `\`${name}\``).join(', ')
    const read = readPage(bytes, resources)
    if (!read.ok) {
      const keys = [...pageKeys(body), ...eventKeys(body, resources)]
      return speaksAgainst(`${read.reason} (the page has ${Object.keys(body).join(', ')})`, yamlOf(keys, resources))
    }
    if (read.value.events.length > 0) return holds(`${read.value.events.length} under ${names}`)
    const odd = Object.entries(body).find(([, value]) => isObject(value))
    if (arrays.length === 0 && odd !== undefined) return speaksAgainst(`no array, but an object under \`${odd[0]}\``)
    return unknown(
      `${arrays.length === 0 ? 'no array' : `an empty array under ${names}`}: an hour with events would tell`,
    )
  })
}

function limitHolds({ list, changes, unlimited, pageLimit }: RegistrySeen): Assessment {
  const { outcome } = list ?? {}
  if (outcome?.kind === 'refused' && outcome.parameter === 'limit') {
    const [most] = (outcome.words.match(/\d+/g) ?? [])
      .map(Number)
      .filter((n) => n > 0 && n < pageLimit)
      .toSorted((a, b) => b - a)
    const evidence = `a limit of ${pageLimit} is refused: ${outcome.words}`
    return speaksAgainst(evidence, { registry: { page_limit: most ?? 100 } })
  }
  if (outcome?.kind !== 'body') return unknown(whyNot(list))
  if (unlimited !== null) return holds(`lists take ${pageLimit}, the feed refuses it and is read without`)
  return holds(`lists${changes?.outcome.kind === 'body' ? ' and the feed' : ''} take ${pageLimit}`)
}

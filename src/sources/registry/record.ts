import { hash } from 'node:crypto'
import type { RegistryField, Resource } from '../../catalog/catalogue.ts'
import { BadBody, type Fields, isFields, recordJson, sortedText, type Value } from './json.ts'

/**
 * Reads a custodian, governing law or regulator: four answers that must not be mixed up, and the text in the brackets
 * of `None (…)`. Null and absent are `not_established`; anything unknown is a name.
 */
function readAnswer(value: string | null): readonly [answer: string, reason: string | null] {
  if (value === null) return ['not_established', null]
  if (value === 'not disclosed') return ['not_disclosed', null]
  return value.startsWith('None (') ? ['none', value.slice(6).replace(/\)\s*$/, '')] : ['named', null]
}

/** Maximum size of a record, and of an id; larger ones count as damaged. */
const longestRecord = 4_000_000
const longestId = 1000

/** Computes 32 hex digits from a text; equal texts have equal ones. */
export const textHash = (text: string): string => hash('md5', text)

/** A record as received. */
export interface Incoming {
  readonly id: string
  /** JSON text from which each value is restored as sent. */
  readonly text: string
  /** 32 hex digits; equal texts have equal ones. */
  readonly hash: string
  /** The product of a deployment, whose removal also removes it; null for other records. */
  readonly product: string | null
  /** Whether the list of deployments would publish it; false for other records. */
  readonly verified: boolean
  /** Whether the deployments of a product must still be added to it; false for other records. */
  readonly bare: boolean
}

/** A record that was read but not hashed. */
export interface RecordText {
  readonly id: string
  /** JSON text from which each value is restored as sent. */
  readonly text: string
  readonly record: Fields
}

/** Reads one record. */
export function readRecord(resource: Resource, value: Value): Incoming {
  return withHash(resource, readRecordText(resource, value))
}

/** Reads the id and the text of a record: the first half of reading it. */
export function readRecordText({ name }: Resource, value: Value): RecordText {
  if (!isFields(value)) throw new BadBody(`${name}: a record that is no object`)
  const { id } = value
  if (id === undefined || id === null || id === '') throw new BadBody(`${name}: a record without id`)
  if (typeof id !== 'string') throw new BadBody(`${name}: an id that is a ${typeof id}, not a text`)
  if (id.length > longestId) throw new BadBody(`${name}: an id of ${id.length} characters`)
  const text = recordJson(value, `${name} ${id}`)
  if (text.length > longestRecord) throw new BadBody(`${name} ${id}: a record of ${text.length} characters`)
  if (text.includes('\\ud') && /(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(text))
    throw new BadBody(`${name} ${id}: half a character`)
  return { id, text, record: value }
}

/** Adds the hash, and the facts about deployments and products: the second half of reading a record. */
export function withHash(resource: Resource, { id, text, record }: RecordText): Incoming {
  const deployment = resource.name === 'deployments'
  return {
    id,
    text,
    hash: textHash(text),
    product: deployment ? fieldText(resource.fields['product_id'], record) : null,
    verified: deployment && record['verification_status'] === 'verified',
    bare: resource.holds['deployments'] !== undefined && record['deployments'] === undefined,
  }
}

/** Reads a named field as text, from the first of its keys that is present; a reference may be an object with an id. */
export function fieldText(field: Pick<RegistryField, 'keys'> | undefined, record: Fields): string | null {
  const key = field?.keys.find((name) => record[name] !== undefined)
  const value = key === undefined ? null : (record[key] ?? null)
  if (value === null || typeof value === 'string') return value
  if (isFields(value) && typeof value['id'] === 'string') return value['id']
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** The typed columns of a record as text; null if the record does not have the field. */
export type TypedFields = Readonly<Record<string, string | null>>

/** Reads the typed columns of a record. */
export function typedFields(resource: Resource, record: Fields): TypedFields {
  const columns: Record<string, string | null> = {}
  for (const [name, field] of Object.entries(resource.fields)) {
    const value = fieldText(field, record)
    columns[name] = value
    if (field.kind !== 'answer') continue
    const [answer, reason] = readAnswer(value)
    columns[`${name}_answer`] = answer
    columns[`${name}_reason`] = reason
  }
  return columns
}

/** A row of a table that records of a resource embed. */
export interface EmbeddedRow {
  readonly table: string
  /** Entity and id of its record, its position there and its hash, joined with `/`. */
  readonly id: string
  /** The entity of its record. */
  readonly parent_type: string
  /** The id of its record. */
  readonly parent_id: string
  /** Position among the rows of the table in that record, from 0. */
  readonly ordinal: number
  /** 16 hex digits; equal contents have equal ones, independently of the order of keys. */
  readonly content_hash: string
  /** The row as JSON. */
  readonly text: string
}

/** Reads everything that a record embeds and that is a table of its own. */
export function childrenOf(resource: Resource, record: Fields): EmbeddedRow[] {
  const id = typeof record['id'] === 'string' ? record['id'] : ''
  const ordinals = new Map<string, number>()
  return Object.entries(resource.embeds).flatMap(([key, table]) => {
    const member = record[key] ?? null
    const items: readonly Value[] = member === null ? [] : Array.isArray(member) ? member : [member]
    return items.map((item) => {
      const ordinal = ordinals.get(table) ?? 0
      ordinals.set(table, ordinal + 1)
      const content_hash = textHash(sortedText(item)).slice(0, 16)
      const place = { parent_type: resource.entity, parent_id: id, ordinal, content_hash }
      return { table, id: `${resource.entity}/${id}/${ordinal}/${content_hash}`, ...place, text: recordJson(item) }
    })
  })
}

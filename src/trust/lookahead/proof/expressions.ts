import { isObject } from '../../../base/json.ts'
import { boundText, ceilingOf, instantIn, directionOf, type Node, part, parts, says, typeOf, word } from './nodes.ts'
import { pureAggregates, pureFunctions } from './functions.ts'
import { boundOf, originOf, type Reading, type Relation } from './relations.ts'
import { addValue, allOf, type Bound, type Fact, type Id, isInstant, isOrdered, valueOf } from './values.ts'

/** The row that an expression reads: its columns, what is true of them, and what becomes true with the expression. */
export interface Scope {
  readonly columns: readonly Id[]
  readonly present: ReadonlySet<Id>
  readonly facts: Fact[]
}

/** Builds the scope of a row of a relation. */
export function scopeOf({ columns, present, facts }: Relation): Scope {
  return { columns, present, facts: [...facts] }
}

/** Reads the value of an expression over the columns of a row. */
export function valueIn(reading: Reading, node: Node, scope: Scope): Id {
  if (word(node, 'expression_class') === 'BOUND_REF') {
    const column = scope.columns[Number(node['index'])]
    if (column !== undefined) return nameColumn(reading, column, word(node, 'alias'))
  }
  const { values } = reading
  const inner = partsOf(node).map((child) => valueIn(reading, child, scope))
  const texts = inner.map((id) => valueOf(values, id).text)
  // Further fields of the node, in addition to its parts.
  const {
    type: step,
    name,
    return_type,
    value,
    function_data,
    try_cast,
    lower_inclusive,
    upper_inclusive,
    index,
  } = node
  const nodeFields = [step, name, return_type, value, function_data, try_cast, lower_inclusive, upper_inclusive, index]
  const key = JSON.stringify([word(node, 'expression_class'), nodeFields, inner])
  const type = expressionType(node)
  const knownId = values.knownIds.get(key)
  const bound = boundIn(reading, node, inner)
  const text = expressionText(node, texts)
  const id = knownId ?? addValue(values, text, type, bound, { instant: isInstant(type) ? instantIn(node) : undefined })
  values.knownIds.set(key, id)
  scope.facts.push(...factsOf(reading, node, id, inner, scope), ...calendarFacts(reading, node, id, inner))
  const below = ceilingOf(node)
  if (below) scope.facts.push([valueIn(reading, below, scope), id])
  return id
}

/** Makes rows of the text a calendar if an instant is computed from them: they are known at it. */
function calendarFacts(reading: Reading, node: Node, id: Id, inner: readonly Id[]): Fact[] {
  if (!/^BOUND_(?:CONSTANT|FUNCTION)$/.test(word(node, 'expression_class')) && inner.length === 0) return []
  const origin = originOf(reading, inner)
  if (origin === undefined) return []
  if (!isInstant(valueOf(reading.values, id).type) || origin.size === 0) {
    reading.origins.set(id, origin)
    return []
  }
  return [...origin].map(({ node: rows, clock }) => {
    reading.calendars.add(rows)
    return [clock, id]
  })
}

/** Names a column: one without a name of its own is called as in the query. */
function nameColumn({ values }: Reading, id: Id, name: string): Id {
  const value = valueOf(values, id)
  if (name !== '' && /^col(?:umn )?\d+$/.test(value.text)) values.list[id] = { ...value, text: name }
  return id
}

/** Lists the expressions that an expression consists of. */
function partsOf(node: Node): readonly Node[] {
  const single = ['child', 'left', 'right', 'input', 'lower', 'upper', 'else_expr'].flatMap((name) =>
    says(node, name) ? [part(node, name)] : [],
  )
  const cases = parts(node, 'case_checks').flatMap((caseCheck) => [
    part(caseCheck, 'when_expr'),
    part(caseCheck, 'then_expr'),
  ])
  return [...cases, ...single, ...parts(node, 'children')]
}

const truths = new Set(['BOUND_COMPARISON', 'BOUND_CONJUNCTION', 'BOUND_BETWEEN'])

function expressionType(node: Node): string {
  if (truths.has(word(node, 'expression_class'))) return 'BOOLEAN'
  return word(node, 'expression_class') === 'BOUND_CONSTANT' ? typeOf(part(node, 'value'), 'type') : typeOf(node)
}

const plain = /^BOUND_(?:CONSTANT|CAST|COMPARISON|CONJUNCTION|BETWEEN|CASE|OPERATOR|FUNCTION|UNNEST)$/

function boundIn(reading: Reading, node: Node, inner: readonly Id[]): Bound {
  const kind = word(node, 'expression_class')
  if (kind === 'BOUND_PARAMETER') return { what: 'a parameter', why: 'its value is not known' }
  if (!plain.test(kind)) return { what: kind || 'an expression', why: 'no rule is known for it' }
  const impure = [...namesIn(node, true)].find((name) => !pureFunctions.has(name) && !isListAggregate(node, name))
  if (impure !== undefined) return { what: `${impure}()`, why: 'it is not known to follow from its arguments alone' }
  const [left, right] = inner
  const compares = kind === 'BOUND_COMPARISON' && left !== undefined && right !== undefined
  return compares ? comparedBound(reading, left, right) : boundOf(reading, inner)
}

/**
 * Computes from when a comparison is known. A version's end is later than the cut until it is recorded: whether an
 * instant lies before it is known at that instant.
 */
export function comparedBound(reading: Reading, left: Id, right: Id): Bound {
  const value = (id: Id) => valueOf(reading.values, id)
  const instant = value(left).until ? right : left
  if (value(left).until === value(right).until || !isInstant(value(instant).type))
    return boundOf(reading, [left, right])
  return allOf(value(instant).bound, new Set([instant]))
}

/** Yields the functions that an expression calls itself, in a lambda too. */
function* namesIn(node: Node, withOwn = false): Generator<string> {
  if (word(node, 'expression_class') === 'BOUND_FUNCTION') yield word(node, 'name')
  for (const [name, member] of Object.entries(node)) {
    if (withOwn && name === 'children') continue
    const all: readonly unknown[] = [member].flat(9)
    for (const element of all)
      if (isObject(element) && !(withOwn && ('expression_class' in element || 'when_expr' in element)))
        yield* namesIn(element)
  }
}

/** Whether a function is `list_sum(l)` or the like: an aggregate of the list alone, named as a text. */
function isListAggregate(node: Node, name: string): boolean {
  if (!/^(?:list|array)_aggr(?:egate)?$/.test(name)) return false
  const [, aggregate] = parts(node, 'children')
  return aggregate !== undefined && pureAggregates.has(boundText(aggregate) ?? '')
}

/** Facts about a row that follow from how a value is computed. */
function factsOf({ values }: Reading, node: Node, id: Id, inner: readonly Id[], { present }: Scope): Fact[] {
  const [first, second] = inner
  const kind = word(node, 'expression_class')
  if (first === undefined) return []
  const both = equalFacts(first, id)
  const type = (id: Id): string => valueOf(values, id).type
  if (kind === 'BOUND_CAST') return castFacts(type(first), type(id), both, node['try_cast'] === true)
  if (kind === 'BOUND_OPERATOR' && word(node, 'type') === 'OPERATOR_COALESCE') return present.has(first) ? both : []
  if (kind !== 'BOUND_FUNCTION') return []
  const name = word(node, 'name')
  const operands = parts(node, 'children')
  if (name === 'least') return inner.map((operand): Fact => [id, operand])
  if (name === 'greatest') return inner.filter((operand) => present.has(operand)).map((operand): Fact => [operand, id])
  if (/^(?:date_trunc|datetrunc|time_bucket)$/.test(name) && second !== undefined && inner.length === 2)
    return operands[0] !== undefined && boundText(operands[0]) !== undefined ? [[id, second]] : []
  if (name === 'timezone' && second !== undefined)
    return operands[0] !== undefined && boundText(operands[0]) === 'UTC' ? equalFacts(second, id) : []
  if (/^(?:make_timestamp|make_timestamptz|epoch_us)$/.test(name) && inner.length === 1) return [[first, id]]
  return movedFacts(name, operands, inner, id, type)
}

/** Facts that two values are equal: neither is later than the other. */
function equalFacts(first: Id, other: Id): Fact[] {
  return [
    [first, other],
    [other, first],
  ]
}

function castFacts(from: string, to: string, both: readonly Fact[], tried: boolean): Fact[] {
  if (!isInstant(from) || !isInstant(to)) return from === to && isOrdered(from) ? [...both] : []
  const [forth, back] = both
  if (forth === undefined || back === undefined) return []
  const rounds = to === 'DATE' && from !== 'DATE'
  return [...(rounds ? [] : [forth]), ...(tried ? [] : [back])]
}

/** Derives facts of an instant plus or minus a constant distance. */
function movedFacts(
  name: string,
  childNodes: readonly Node[],
  inner: readonly Id[],
  id: Id,
  type: (id: Id) => string,
): Fact[] {
  if ((name !== '+' && name !== '-') || childNodes.length !== 2) return []
  const at = childNodes.findIndex(
    (_, n) => isOrdered(type(inner[n] ?? -1)) && (isInstant(type(inner[n] ?? -1)) || n === 0),
  )
  const start = inner[at]
  const distance = childNodes[1 - at]
  if (start === undefined || distance === undefined || !isOrdered(type(id)) || (name === '-' && at !== 0)) return []
  const ahead = directionOf(distance) * (name === '-' ? -1 : 1)
  return ahead === 0 ? [] : [ahead > 0 ? [start, id] : [id, start]]
}

/** Facts about the rows in which a condition is true. */
export function factsIf(reading: Reading, node: Node, scope: Scope): { facts: Fact[]; present: Id[] } {
  const kind = word(node, 'expression_class')
  const value = (child: Node): Id => valueIn(reading, child, scope)
  if (kind === 'BOUND_CONJUNCTION' && word(node, 'type') === 'CONJUNCTION_AND') {
    const all = parts(node, 'children').map((child) => factsIf(reading, child, scope))
    return { facts: all.flatMap(({ facts }) => facts), present: all.flatMap(({ present }) => present) }
  }
  if (kind === 'BOUND_BETWEEN') {
    const [input, lower, upper] = ['input', 'lower', 'upper'].map((name) => value(part(node, name)))
    if (input === undefined || lower === undefined || upper === undefined) return { facts: [], present: [] }
    const low = comparedFacts(reading, 'COMPARE_LESSTHAN', lower, input)
    const high = comparedFacts(reading, 'COMPARE_LESSTHAN', input, upper)
    return { facts: [...low, ...high], present: [input, lower, upper] }
  }
  if (kind === 'BOUND_OPERATOR' && word(node, 'type') === 'OPERATOR_IS_NOT_NULL')
    return { facts: [], present: parts(node, 'children').map(value) }
  if (kind !== 'BOUND_COMPARISON') return { facts: [], present: [] }
  const left = value(part(node, 'left'))
  const right = value(part(node, 'right'))
  const present = /DISTINCT/.test(word(node, 'type')) ? [] : [left, right]
  return { facts: comparedFacts(reading, word(node, 'type'), left, right), present }
}

/** Facts about the order of both sides of a comparison that is true. */
export function comparedFacts({ values }: Reading, comparison: string, left: Id, right: Id): Fact[] {
  if (![left, right].every((id) => isOrdered(valueOf(values, id).type))) return []
  if (/^COMPARE_(?:EQUAL|NOT_DISTINCT_FROM)$/.test(comparison)) return equalFacts(left, right)
  if (/^COMPARE_LESSTHAN(?:OREQUALTO)?$/.test(comparison)) return [[left, right]]
  return /^COMPARE_GREATERTHAN(?:OREQUALTO)?$/.test(comparison) ? [[right, left]] : []
}

const signs: Readonly<Record<string, string>> = {
  COMPARE_EQUAL: '=',
  COMPARE_NOTEQUAL: '<>',
  COMPARE_LESSTHAN: '<',
  COMPARE_LESSTHANOREQUALTO: '<=',
  COMPARE_GREATERTHAN: '>',
  COMPARE_GREATERTHANOREQUALTO: '>=',
}

/** Formats an expression in few words. */
function expressionText(node: Node, inner: readonly string[]): string {
  const kind = word(node, 'expression_class')
  if (kind === 'BOUND_CONSTANT') return boundText(node) ?? JSON.stringify(part(node, 'value')['value'] ?? null)
  if (kind === 'BOUND_CAST') return inner[0] ?? ''
  if (kind === 'BOUND_COMPARISON') return inner.join(` ${signs[word(node, 'type')] ?? 'against'} `)
  const name = word(node, 'name')
  const text =
    node['is_operator'] === true ? inner.join(` ${name} `) : `${name || operatorName(node)}(${inner.join(', ')})`
  return text.length > 70 ? `${text.slice(0, 67)}...` : text
}

function operatorName(node: Node): string {
  return word(node, 'type')
    .replace(/^(?:OPERATOR|BOUND|COMPARE|CONJUNCTION)_/, '')
    .replace(/_EXPR$/, '')
}

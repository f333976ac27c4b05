/** A resource of the registry that the program's own catalogue does not know, as its file says it. */
export const funds = `
  funds:
    entity: fund
    path: /funds
    detail: false
    fields:
      name: { kind: text }
      manager_id: { kind: reference, keys: [manager_id, manager], to: issuers }
      domicile: { kind: answer }
    embeds: { fees: fees, lots: order }
    filters: [name]
`

function words(text: string, between = ' '): readonly string[] {
  return text.split(between)
}

/** The asset class that no document lists. */
export const laterAssetClass = 'carbon-credits'

/**
 * The asset classes, how common each is among new assets, and the tails of names, where `%` is the word pair before it.
 * The list is open and grows in this world in June 2025, by the last one.
 */
export const assetClasses: readonly (readonly [name: string, weight: number, tails: readonly string[]])[] = [
  ['stocks', 34, ['% Corp.', '% Industries plc', '% Technologies Inc.', '% Pharma AG', '% Energy SA']],
  ['funds-etfs', 14, ['% Core Equity UCITS ETF', '% Global Bond ETF', '% Small Cap Fund']],
  ['us-treasury-funds', 6, ['% Short-Term Treasury Fund', '% T-Bill Liquidity Fund']],
  ['non-us-govt-debt', 4, ['% Bund Fund', '% Euro Government Bond Fund', '% Gilt Fund']],
  ['corporate-bonds', 6, ['% 4.25% Notes 2029', '% 6.125% Senior Notes 2031', '% Green Bond 2030']],
  ['credit', 6, ['% Private Credit Fund', '% Trade Finance Pool', '% CLO AAA Notes']],
  ['commodities', 5, ['% Vaulted Gold', '% Silver Bullion', '% Uranium Stockpile']],
  ['stablecoins', 5, ['% US Dollar', '% Euro', '% Swiss Franc']],
  ['indices', 4, ['% 500 Index', '% Technology 100 Index']],
  ['pe-vc', 4, ['% Growth Partners IV', '% Venture Fund II']],
  ['real-estate', 6, ['% Residential REIT', '% Office Park', '% Logistics Property']],
  ['insurance-linked', 2, ['% Catastrophe Bond 2027', '% Reinsurance Sidecar']],
  [laterAssetClass, 0, ['% Forest Carbon 2024', '% Removal Credits']],
]

/** The listed venue types; the list is open and grows in this world in November 2025. */
export const venueTypes = ['cex', 'perp-dex', 'rwa-exchange'] as const

/** The venue type that no document lists. */
export const laterVenueType = 'otc-desk'

/** The product status that no document lists. */
export const laterProductStatus = 'suspended'

/** The deployment status that no document lists. */
export const laterDeploymentStatus = 'paused'

/** A chain as the registry writes it: one chain may stand under several ids. */
export interface Chain {
  readonly name: string
  readonly ids: readonly string[]
  readonly form: 'evm' | 'base58' | 'stellar' | 'ripple' | 'long'
}

/** The chains of the world, the most used first. */
export const chains: readonly Chain[] = [
  { name: 'ethereum', ids: ['1', '1', '1', 'eip155:1'], form: 'evm' },
  { name: 'solana', ids: ['solana'], form: 'base58' },
  { name: 'base', ids: ['8453', 'eip155:8453'], form: 'evm' },
  { name: 'arbitrum', ids: ['42161', '42161', 'eip155:42161'], form: 'evm' },
  { name: 'bsc', ids: ['56', 'eip155:56'], form: 'evm' },
  { name: 'polygon', ids: ['137', 'eip155:137'], form: 'evm' },
  { name: 'avalanche', ids: ['43114', 'eip155:43114'], form: 'evm' },
  { name: 'optimism', ids: ['10'], form: 'evm' },
  { name: 'mantle', ids: ['5000'], form: 'evm' },
  { name: 'zksync', ids: ['324'], form: 'evm' },
  { name: 'stellar', ids: ['stellar'], form: 'stellar' },
  { name: 'xrpl', ids: ['xrpl'], form: 'ripple' },
  { name: 'aptos', ids: ['aptos'], form: 'long' },
  { name: 'sui', ids: ['sui'], form: 'long' },
]

/** Home countries of issuers, with the ISIN prefixes of their papers. */
export const jurisdictions = words('US CH LI LU IE DE FR GB JE KY VG BM SG HK AE JP')

/** The three fields of an issuer that tell null, `not disclosed`, `None (…)` and a name apart: the names and the reasons. */
export const disclosures: Readonly<Record<string, Readonly<Record<'named' | 'none', readonly string[]>>>> = {
  custodian: {
    named: words(
      'Alpine Custody AG; Harbour Trust Company; Northgate Bank & Trust; Banque de Garde Léman S.A.; ' +
        'Meridian Fund Services Ltd.; Castellan Digital Custody; Eastbridge Securities Services; Keystone Depository Trust',
      '; ',
    ),
    none: ['None (self-custodied structure)', 'None (assets held on-chain by the issuer)'],
  },
  governing_law: {
    named: words(
      'Laws of Switzerland; Laws of Liechtenstein; Laws of Luxembourg; State of Delaware, USA; ' +
        'State of New York, USA; England and Wales; British Virgin Islands; Cayman Islands; Singapore',
      '; ',
    ),
    none: ['None (protocol without a legal entity)'],
  },
  regulator: {
    named: words('FINMA; FMA Liechtenstein; CSSF; SEC; BaFin; FCA; MAS; BMA; CIMA; VARA', '; '),
    none: ['None (exempt private placement)', 'None (unregulated entity)'],
  },
}

/** Words that names are made of. */
export const firstWords = words(
  'Alder Amber Anchor Arc Atlas Aurora Basalt Beacon Birch Bright Cedar Cinder Cobalt Coral Crest Delta Ember ' +
    'Fathom Field Flint Garnet Glacier Granite Harbor Hazel Indigo Iris Juniper Keel Larch Lumen Maple Marble ' +
    'Nimbus North Oak Onyx Orchard Pine Quartz River Saffron Sage Sierra Slate Solis Spruce Sterling Summit ' +
    'Terra Tidal Umber Vale Verdant Vista Walnut West Willow Zenith Zephyr',
)

export const secondWords = words(
  'Bay Bridge Brook Crown Dale Edge Fall Fjord Forge Gate Grove Haven Hill House Lake Land Light Line Mark ' +
    'Mill Path Peak Point Port Reach Ridge Rock Shore Spring Stone Stream Tower Vault View Ward Water Way Well ' +
    'Wick Wood',
)

/** What follows the word pair in the name of an issuer. */
export const issuerForms = words(
  'Finance AG; Assets Ltd.; Capital LLC; Tokenization S.A.; Digital Securities GmbH; Trust; Protocol; Markets Inc.',
  '; ',
)

/** The listed asset classes; the list is open and grows in this world in June 2025. */
export const assetClasses = [
  'stocks',
  'funds-etfs',
  'us-treasury-funds',
  'non-us-govt-debt',
  'corporate-bonds',
  'credit',
  'commodities',
  'stablecoins',
  'indices',
  'pe-vc',
  'real-estate',
  'insurance-linked',
] as const

/** The asset class that no document lists. */
export const laterAssetClass = 'carbon-credits'

/** The listed venue types; the list is open and grows in this world in November 2025. */
export const venueTypes = ['cex', 'perp-dex', 'rwa-exchange'] as const

/** The venue type that no document lists. */
export const laterVenueType = 'otc-desk'

/** Status values of issuers and products that a filter takes. */
export const itemStatuses = ['active', 'inactive'] as const

/** The product status that no document lists. */
export const laterProductStatus = 'suspended'

/** Status values of deployments that a filter takes. */
export const deploymentStatuses = ['active', 'deprecated', 'inactive'] as const

/** The deployment status that no document lists. */
export const laterDeploymentStatus = 'paused'

/** How far the registry has checked a deployment; the deployment list publishes verified rows only. */
export const verificationStatuses = ['verified', 'unverified'] as const

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
export const jurisdictions = [
  'US',
  'CH',
  'LI',
  'LU',
  'IE',
  'DE',
  'FR',
  'GB',
  'JE',
  'KY',
  'VG',
  'BM',
  'SG',
  'HK',
  'AE',
  'JP',
]

/** Named custodians. */
export const custodians = [
  'Alpine Custody AG',
  'Harbour Trust Company',
  'Northgate Bank & Trust',
  'Banque de Garde Léman S.A.',
  'Meridian Fund Services Ltd.',
  'Castellan Digital Custody',
  'Eastbridge Securities Services',
  'Keystone Depository Trust',
]

/** Named governing laws. */
export const governingLaws = [
  'Laws of Switzerland',
  'Laws of Liechtenstein',
  'Laws of Luxembourg',
  'State of Delaware, USA',
  'State of New York, USA',
  'England and Wales',
  'British Virgin Islands',
  'Cayman Islands',
  'Singapore',
]

/** Named regulators. */
export const regulators = ['FINMA', 'FMA Liechtenstein', 'CSSF', 'SEC', 'BaFin', 'FCA', 'MAS', 'BMA', 'CIMA', 'VARA']

/** Reasons that stand behind `None (`, by field. */
export const noneReasons = {
  custodian: ['None (self-custodied structure)', 'None (assets held on-chain by the issuer)'],
  governing_law: ['None (protocol without a legal entity)'],
  regulator: ['None (exempt private placement)', 'None (unregulated entity)'],
} as const

const firstWordsText =
  'Alder Amber Anchor Arc Atlas Aurora Basalt Beacon Birch Bright Cedar Cinder Cobalt Coral Crest Delta Ember ' +
  'Fathom Field Flint Garnet Glacier Granite Harbor Hazel Indigo Iris Juniper Keel Larch Lumen Maple Marble ' +
  'Nimbus North Oak Onyx Orchard Pine Quartz River Saffron Sage Sierra Slate Solis Spruce Sterling Summit ' +
  'Terra Tidal Umber Vale Verdant Vista Walnut West Willow Zenith Zephyr'

/** Words that names are made of. */
export const firstWords = firstWordsText.split(' ')

const secondWordsText =
  'Bay Bridge Brook Crown Dale Edge Fall Fjord Forge Gate Grove Haven Hill House Lake Land Light Line Mark ' +
  'Mill Path Peak Point Port Reach Ridge Rock Shore Spring Stone Stream Tower Vault View Ward Water Way Well ' +
  'Wick Wood'

/** Words that names are made of. */
export const secondWords = secondWordsText.split(' ')

/** What follows the word pair in the name of an issuer. */
export const issuerForms = [
  'Finance AG',
  'Assets Ltd.',
  'Capital LLC',
  'Tokenization S.A.',
  'Digital Securities GmbH',
  'Trust',
  'Protocol',
  'Markets Inc.',
]

/** The tail of an asset's name by class; `%` is the word pair before it. */
export const assetTails: Readonly<Record<string, readonly string[]>> = {
  stocks: ['% Corp.', '% Industries plc', '% Technologies Inc.', '% Pharma AG', '% Energy SA'],
  'funds-etfs': ['% Core Equity UCITS ETF', '% Global Bond ETF', '% Small Cap Fund'],
  'us-treasury-funds': ['% Short-Term Treasury Fund', '% T-Bill Liquidity Fund'],
  'non-us-govt-debt': ['% Bund Fund', '% Euro Government Bond Fund', '% Gilt Fund'],
  'corporate-bonds': ['% 4.25% Notes 2029', '% 6.125% Senior Notes 2031', '% Green Bond 2030'],
  credit: ['% Private Credit Fund', '% Trade Finance Pool', '% CLO AAA Notes'],
  commodities: ['% Vaulted Gold', '% Silver Bullion', '% Uranium Stockpile'],
  stablecoins: ['% US Dollar', '% Euro', '% Swiss Franc'],
  indices: ['% 500 Index', '% Technology 100 Index'],
  'pe-vc': ['% Growth Partners IV', '% Venture Fund II'],
  'real-estate': ['% Residential REIT', '% Office Park', '% Logistics Property'],
  'insurance-linked': ['% Catastrophe Bond 2027', '% Reinsurance Sidecar'],
  'carbon-credits': ['% Forest Carbon 2024', '% Removal Credits'],
}

/** How common each listed class is among new assets, in the order of `assetClasses`. */
export const classWeights = [34, 14, 6, 4, 6, 6, 5, 5, 4, 4, 6, 2]

/** What kind of thing an asset is: it decides which endpoints know it and how its price moves. */
export type AssetFamily =
  | ('bitcoin' | 'ethereum' | 'utxo' | 'chain' | 'token' | 'meme')
  | ('stable' | 'staked' | 'gold' | 'fund')

/** One asset of the sandbox's metrics API; `chain_id` (CAIP-2) and `address` stand on tokens with a contract. */
export interface WorldAsset {
  readonly id: string
  readonly symbol: string
  readonly name: string
  readonly chain_id?: string
  readonly address?: string
  readonly family: AssetFamily
  /** The day of its first point, `YYYY-MM-DD`. */
  readonly born: string
  /** Its price in USD on that day and around 2024: the ends of its trend. */
  readonly prices: readonly [number, number]
  /** Its circulating supply around 2024, in coins. */
  readonly supply: number
}

/** Of each asset: id, name, family, born, first and recent price, supply. */
const rows: readonly (readonly [string, string, AssetFamily, string, number, number, number])[] = [
  ['BTC', 'Bitcoin', 'bitcoin', '2010-07-18', 0.08, 62_000, 19_700_000],
  ['ETH', 'Ethereum', 'ethereum', '2015-08-07', 1.1, 3000, 120_200_000],
  ['LTC', 'Litecoin', 'utxo', '2011-10-13', 0.3, 80, 74_500_000],
  ['DOGE', 'Dogecoin', 'utxo', '2013-12-15', 0.0004, 0.14, 144_000_000_000],
  ['BCH', 'Bitcoin Cash', 'utxo', '2017-08-01', 300, 380, 19_700_000],
  ['SOL', 'Solana', 'chain', '2020-04-10', 0.9, 150, 450_000_000],
  ['XRP', 'XRP', 'chain', '2014-08-15', 0.006, 0.55, 56_000_000_000],
  ['BNB', 'BNB', 'chain', '2017-07-25', 0.1, 560, 147_000_000],
  ['TRX', 'TRON', 'chain', '2017-09-13', 0.002, 0.13, 87_000_000_000],
  ['TON', 'Toncoin', 'chain', '2021-08-27', 0.8, 6, 2_500_000_000],
  ['AVAX', 'Avalanche', 'chain', '2020-09-22', 4, 30, 400_000_000],
  ['DOT', 'Polkadot', 'chain', '2020-08-19', 2.9, 6, 1_430_000_000],
  ['ADA', 'Cardano', 'chain', '2017-10-01', 0.02, 0.42, 35_600_000_000],
  ['NEAR', 'NEAR Protocol', 'chain', '2020-10-14', 1.1, 5, 1_100_000_000],
  ['LINK', 'Chainlink', 'token', '2017-09-20', 0.16, 14, 600_000_000],
  ['UNI', 'Uniswap', 'token', '2020-09-17', 3, 8, 600_000_000],
  ['AAVE', 'Aave', 'token', '2020-10-02', 50, 110, 14_900_000],
  ['MKR', 'Maker', 'token', '2017-12-20', 600, 2400, 930_000],
  ['LDO', 'Lido DAO', 'token', '2021-01-05', 1.5, 1.8, 890_000_000],
  ['CRV', 'Curve DAO', 'token', '2020-08-14', 5, 0.4, 1_200_000_000],
  ['COMP', 'Compound', 'token', '2020-06-16', 90, 52, 8_200_000],
  ['SNX', 'Synthetix', 'token', '2018-03-14', 0.5, 2, 327_000_000],
  ['GRT', 'The Graph', 'token', '2020-12-17', 0.12, 0.2, 9_500_000_000],
  ['1INCH', '1inch', 'token', '2020-12-25', 2.3, 0.35, 1_200_000_000],
  ['ONDO', 'Ondo', 'token', '2024-01-18', 0.2, 0.8, 1_400_000_000],
  ['ARB', 'Arbitrum', 'token', '2023-03-23', 1.4, 0.8, 3_300_000_000],
  ['WBTC', 'Wrapped Bitcoin', 'staked', '2019-01-30', 3500, 62_000, 155_000],
  ['stETH', 'Lido Staked Ether', 'staked', '2020-12-20', 640, 3000, 9_600_000],
  ['SHIB', 'Shiba Inu', 'meme', '2020-08-01', 1e-9, 1.8e-5, 589_000_000_000_000],
  ['PEPE', 'Pepe', 'meme', '2023-04-17', 1e-7, 1e-5, 420_000_000_000_000],
  ['$TRUMP', 'Official Trump', 'meme', '2025-01-18', 27, 9, 200_000_000],
  ['$WIF', 'dogwifhat', 'meme', '2023-12-20', 0.1, 2, 998_000_000],
  ['a.b', 'Alpha.Beta', 'meme', '2022-02-02', 0.5, 0.03, 77_000_000],
  ['yfi.v2', 'Vault Share v2', 'token', '2021-03-01', 30_000, 6000, 33_000],
  ['PEPE 2.0', 'Pepe 2.0', 'meme', '2023-07-01', 5e-8, 2e-8, 420_000_000_000_000],
  ['1', 'One', 'meme', '2022-06-01', 1, 0.7, 1_000_000],
  ['00', 'Double Zero', 'meme', '2023-01-15', 0.1, 0.05, 800_000_000],
  ['404', 'Error 404', 'meme', '2024-02-05', 40, 12, 10_000],
  ['Cake', 'PancakeSwap', 'token', '2020-09-29', 0.5, 2, 280_000_000],
  ['btc', 'Lower-case BTC parody', 'meme', '2021-05-05', 0.02, 0.001, 21_000_000_000],
  ['USDT', 'Tether', 'stable', '2017-11-28', 1, 1, 112_000_000_000],
  ['USDC', 'USD Coin', 'stable', '2018-09-26', 1, 1, 33_000_000_000],
  ['DAI', 'Dai', 'stable', '2019-11-18', 1, 1, 5_300_000_000],
  ['USDe', 'Ethena USDe', 'stable', '2023-11-24', 1, 1, 3_000_000_000],
  ['FRAX', 'Frax', 'stable', '2020-12-16', 1, 1, 650_000_000],
  ['XAUT', 'Tether Gold', 'gold', '2020-01-17', 1560, 2350, 246_000],
  ['PAXG', 'PAX Gold', 'gold', '2019-09-05', 1510, 2350, 185_000],
  ['USDY', 'Ondo US Dollar Yield', 'fund', '2023-08-01', 1, 1.05, 320_000_000],
  ['OUSG', 'Ondo Short-Term US Government Bond Fund', 'fund', '2023-01-26', 100, 106, 2_100_000],
  ['BUIDL', 'BlackRock USD Institutional Digital Liquidity Fund', 'fund', '2024-03-20', 1, 1, 500_000_000],
  ['USTB', 'Superstate Short Duration US Government Securities Fund', 'fund', '2024-02-01', 10, 10.4, 9_800_000],
  ['USYC', 'Hashnote International Short Duration Yield Fund', 'fund', '2023-06-01', 1, 1.06, 200_000_000],
  ['TBILL', 'OpenEden T-Bills', 'fund', '2023-04-14', 1, 1.06, 80_000_000],
]

/** Where tokens have a contract: the address, on Ethereum unless a chain stands before it. */
const contracts: Readonly<Record<string, string>> = {
  LINK: '0x514910771af9ca656af840dff83e8264ecf986ca',
  UNI: '0x1f9840a85d5af5bf1d1762f925bdaddc4201f984',
  AAVE: '0x7fc66500c84a76ad7e9c93437bfc5ac33e2ddae9',
  MKR: '0x9f8f72aa9304c8b593d555f12ef6589cc3a579a2',
  LDO: '0x5a98fcbea516cf06857215779fd812ca3bef1b32',
  CRV: '0xd533a949740bb3306d119cc777fa900ba034cd52',
  COMP: '0xc00e94cb662c3520282e6f5717214004a7f26888',
  SNX: '0xc011a73ee8576fb46f5e1c5751ca3b9fe0af2a6f',
  GRT: '0xc944e90c64b2c07662a292be6244bdf05cda44a7',
  '1INCH': '0x111111111117dc0aa78b770fa6a738034120c302',
  ONDO: '0xfaba6f8e4a5e8ab82f62fe7c39859fa577269be3',
  ARB: 'eip155:42161/0x912ce59144191c1204e64559fe8253a0e49e6548',
  WBTC: '0x2260fac5e5542a773aa44fbcfedf7c193bc2c599',
  stETH: '0xae7ab96520de3a18e5e111b5eaab095312d7fe84',
  SHIB: '0x95ad61b0a150d79219dcf64e1e6cc01f0b64c4ce',
  PEPE: '0x6982508145454ce325ddbe47a25d4ec3d2311933',
  $TRUMP: 'solana/6p6xgHyF7AeE6TZkSmFsko444wqoP15icUSqi2jfGiPN',
  USDT: '0xdac17f958d2ee523a2206206994597c13d831ec7',
  USDC: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48',
  DAI: '0x6b175474e89094c44da98b954eedeac495271d0f',
  USDe: '0x4c9edd5852cd905f086c759e8383e09bff1e68b3',
  FRAX: '0x853d955acef822db058eb8505911ed77f175b99e',
  XAUT: '0x68749665ff8d2d112fa859aa293f07a622782f38',
  PAXG: '0x45804880de22913dafe09f4980848ece6ecbaf78',
  USDY: '0x96f6ef951840721adbf46ac996b59e0235cb985c',
  OUSG: '0x1b19c19393e2d034d8ff31ff34c81252fcc23af6',
  BUIDL: '0x7712c34205737192402172409a8f7ccef8aa2aec',
  USTB: '0x43415eb6ff9db7e26a15b704e7a3edce97d31c4e',
  USYC: '0x136471a34f6ef19fe571effc1ca711fdb8e49f2b',
  TBILL: '0xdd50c053c096cb04a3e3362e2b622529ec5f2e8a',
}

/** Symbols that differ from the id: two of them are shared with another asset, as real listings have it. */
const symbols: Readonly<Record<string, string>> = { 'yfi.v2': 'YFI', 'a.b': 'ALPHA', 'PEPE 2.0': 'PEPE', btc: 'BTC' }

/** Every asset that the sandbox's metrics API knows, in the order of its listing. */
export const worldAssets: readonly WorldAsset[] = rows.map(([id, name, family, born, first, recent, supply]) => {
  const [address, chain_id = 'eip155:1'] = contracts[id]?.split('/').toReversed() ?? []
  const contract = address === undefined ? {} : { chain_id, address }
  return { id, symbol: symbols[id] ?? id, name, ...contract, family, born, prices: [first, recent], supply }
})

/** The first second of a day, `YYYY-MM-DD`. */
export const dateAt = (text: string): number => Date.parse(text) / 1000

/** The tables of features, which are made when the feature first uses them. */
export const FEATURE_PARTS = ['grants', 'keys', 'connections'] as const

export type FeaturePart = typeof FEATURE_PARTS[number]

/**
 * Returns what statements on the tables of a feature need, a `SqlDatabase`; another one once a file
 * was replaced. It is not named: an application would need the types of Drizzle.
 */
export type FeatureTables = (part: FeaturePart) => Promise<object>

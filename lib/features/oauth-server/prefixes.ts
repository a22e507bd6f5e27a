/** What the tokens and codes of the server begin with: a header says by it what it carries. */
export const PREFIXES = { access: 'sat_', refresh: 'srt_', code: 'sac_' } as const

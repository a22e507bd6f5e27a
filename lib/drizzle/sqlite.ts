export * from './sql.js'
export * from '../schema/sqlite.js'
export { drizzle } from 'drizzle-orm/better-sqlite3'

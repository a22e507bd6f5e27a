import { defineConfig } from 'drizzle-kit'

export default defineConfig({ dialect: 'postgresql', schema: './lib/schema/postgres.ts', out: './drizzle/postgres' })

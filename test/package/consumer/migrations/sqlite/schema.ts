import { relations } from 'drizzle-orm'
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { users } from 'fastify-svc-auth/schema/sqlite'

export * from 'fastify-svc-auth/schema/sqlite'

export const notes = sqliteTable('notes', {
  id: integer('id').primaryKey(),
  text: text('text').notNull(),
  authorId: text('author').notNull().references(() => users.userId, { onDelete: 'cascade' })
})

export const notesRelations = relations(notes, ({ one }) => ({
  author: one(users, { fields: [notes.authorId], references: [users.userId] })
}))

// What the engines of the store use of Drizzle. `npm run build` puts it, and the modules beside it,
// into the package as few files (drizzle/bundle.mjs says why).
export {
  type Column, type SQL, type SQLWrapper, type WithSubquery, and, asc, count, desc, eq, fillPlaceholders,
  getTableColumns, gt, gte, inArray, isNotNull, isNull, lt, lte, not, notInArray, or, sql
} from 'drizzle-orm'

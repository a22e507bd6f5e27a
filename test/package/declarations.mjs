/** A module for each entry point of the package that exports all that an application may get from it: each declaration must be nameable. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import ts from 'typescript'

/** Not exported by @fastify/session: its `Signer`. */
const OF_OTHERS = ['SessionOptions.secret']

/** Whether an entry point needs drizzle-orm. */
export const ofSchemas = name => name.startsWith('./schema/')

/** Writes the modules of the entry points that are meant into a folder of a project where the package is installed. */
export async function writeExports (project, folder, isMeant) {
  const root = project.path('node_modules/fastify-svc-auth')
  const { exports } = JSON.parse(await readFile(`${root}/package.json`, 'utf8'))
  const entries = Object.entries(exports).filter(([name, { types }]) => types !== undefined && isMeant(name))
  const program = ts.createProgram(entries.map(([, { types }]) => `${root}/${types}`), { module: ts.ModuleKind.NodeNext, strict: true })
  await mkdir(project.path(folder), { recursive: true })
  for (const [name, { types }] of entries) {
    const lines = exportsOf(program.getTypeChecker(), program.getSourceFile(`${root}/${types}`), root)
    const file = project.path(folder, `${name.slice(2).replace('/', '-') || 'index'}.ts`)
    await writeFile(file, [`import type * as entry from '${name.replace('.', 'fastify-svc-auth')}'`, ...lines].join('\n'))
  }
}

/** A line for each value, for each member of a class or an interface, and for what a method takes and returns. */
function exportsOf (checker, file, root) {
  let count = 0
  const exported = (...types) => types.map(type => `export const e${count++} = (value: ${type}) => ({ value })`)
  return checker.getExportsOfModule(checker.getSymbolAtLocation(file)).flatMap(alias => {
    const symbol = alias.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(alias) : alias
    const isValue = symbol.flags & ts.SymbolFlags.Value && !ts.isTypeOnlyImportOrExportDeclaration(alias.declarations[0])
    const value = isValue ? exported(`typeof entry.${alias.name}`) : []
    const isGeneric = symbol.declarations.some(({ typeParameters }) => typeParameters !== undefined)
    if (!(symbol.flags & ts.SymbolFlags.Type) || isGeneric) return value
    const members = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)).filter(isPublic)
      .filter(({ declarations = [] }) => declarations.every(declaration => declaration.getSourceFile().fileName.startsWith(root)))
      .filter(({ name }) => !OF_OTHERS.includes(`${alias.name}.${name}`))
    return [...value, ...members.flatMap(member => {
      const type = `entry.${alias.name}['${member.name}']`
      const isCalled = checker.getNonNullableType(checker.getTypeOfSymbol(member)).getCallSignatures().length > 0
      return exported(type, ...isCalled ? [`Parameters<NonNullable<${type}>>`, `ReturnType<NonNullable<${type}>>`] : [])
    })]
  })
}

function isPublic ({ name, declarations = [] }) {
  return !name.startsWith('__') && declarations.every(declaration => !ts.isPrivateIdentifier(declaration.name ?? declaration) &&
    (ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.NonPublicAccessibilityModifier) === 0 &&
    ts.getJSDocTags(declaration).every(({ tagName }) => tagName.text !== 'hidden'))
}

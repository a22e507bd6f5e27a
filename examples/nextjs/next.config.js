// Without it, Next.js takes the folder of the outermost package-lock.json for the application.
export default { turbopack: { root: import.meta.dirname } }

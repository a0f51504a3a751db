import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(js.configs.recommended, ...tseslint.configs.strictTypeChecked, {
  languageOptions: { parserOptions: { projectService: true } },
  rules: {
    curly: 'error',
    eqeqeq: 'error',
    // Signals take the object of a method as their second argument.
    '@typescript-eslint/unbound-method': 'off',
    '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }]
  }
});

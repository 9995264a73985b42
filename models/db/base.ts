// The base of all models: one mapper between snake_case columns and camelCase fields, and nothing else.
import { Model, snakeCaseMappers } from 'objection';

export class BaseModel extends Model {
  static override get columnNameMappers() {
    return snakeCaseMappers();
  }
  static override get useLimitInFirst() {
    return true;
  }
}

export type {
  Answer,
  Call,
  ErrorCodesOf,
  Input,
  OperationName,
  Options,
  Output,
  ReadOptions,
  WriteOptions,
} from './call.ts';
export { type Client, type ClientOptions, createClient, type RetryOptions } from './client.ts';
export { ApiError, ConnectionError, type ConnectionProblem, type Issue, isApiError } from './errors.ts';
export { ERROR_STATUS, type ErrorCode } from './generated/errors.ts';
export type * from './generated/models.ts';
export type { Operations } from './generated/operations.ts';
export { each, type ListName } from './paging.ts';

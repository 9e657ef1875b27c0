/** The gateway takes the session of a request from the headers that agents send. */
import { expect, it } from 'vitest';
import { fileOf, startGateway } from './support/gateway.js';

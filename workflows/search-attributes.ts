import { defineSearchAttributeKey, type SearchAttributePair, TypedSearchAttributes } from '@temporalio/common';
import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';

const JOB = defineSearchAttributeKey('OnceperJob', 'KEYWORD');
const PERIOD = defineSearchAttributeKey('OnceperPeriod', 'KEYWORD');
const STATE = defineSearchAttributeKey('OnceperState', 'KEYWORD');

/** The attributes a period workflow carries from its start; children inherit none. */
export function periodAttributes(job: string, period: string, state: string): TypedSearchAttributes {
  const pairs: SearchAttributePair[] = [
    { key: JOB, value: job },
    { key: PERIOD, value: period },
    { key: STATE, value: state },
  ];
  return new TypedSearchAttributes(pairs);
}

/** Shows a state in the list of workflows and a sentence on the workflow's own page. */
export function showState(state: string, details: string): void {
  upsertSearchAttributes([{ key: STATE, value: state }]);
  setCurrentDetails(details);
}

/** The job's id: the first part of every business key of its periods. */
export const jobId = 'settlement';

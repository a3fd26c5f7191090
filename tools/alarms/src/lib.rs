//! CloudWatch's alarms: reads those of a template, and evaluates them over metric samples as CloudWatch does.
//!
//! | part | follows the *Amazon CloudWatch User Guide* |
//! |---|---|
//! | data points: a statistic of the samples in each period | *Metrics concepts*: statistics, periods |
//! | an evaluation each minute, over periods that end at that minute | *Limits of alarms on connected data sources* |
//! | M of N data points, and the evaluation range | *Alarm evaluation* |
//! | missing data, in four ways | *Configuring how CloudWatch alarms treat missing data*, both tables |
//! | `SUM(METRICS())` and `SUM(FILL(METRICS(), 0))` | *Using math expressions with CloudWatch metrics* |
//! | alarms on `AWS/DynamoDB` ignore missing data, whatever they say | *Configuring how CloudWatch alarms treat missing data* |
//!
//! Anything else in an alarm is an error: composite alarms, other expressions and statistics, anomaly bands. Left out is
//! what happens at the edges of CloudWatch: metrics that arrive late, actions, and alarms over more than a day that are
//! evaluated each hour. They are evaluated each minute here, which can only show more.
//!
//! A resource stands for its physical name: `!Ref Function` and `!GetAtt Queue.QueueName` are the dimension values
//! `Function` and `Queue`.

mod alarm;
mod evaluation;
mod expression;
mod metric;
mod resources;
mod watch;

pub use alarm::{Alarm, Comparison, TreatMissingData};
pub use evaluation::{AlarmState, Change, EXTRA_DATAPOINTS};
pub use expression::{Series, Statistic};
pub use metric::{Metric, Minute, Sample, Samples};
pub use resources::Resources;
pub use watch::{Watch, history};

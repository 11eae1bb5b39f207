PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "experiments" (
	experiment_id INTEGER NOT NULL, 
	name VARCHAR(256) NOT NULL, 
	artifact_location VARCHAR(256), 
	lifecycle_stage VARCHAR(32), 
	creation_time BIGINT, 
	last_update_time BIGINT, 
	workspace VARCHAR(63) DEFAULT 'default' NOT NULL, 
	CONSTRAINT experiment_pk PRIMARY KEY (experiment_id), 
	CONSTRAINT experiments_lifecycle_stage CHECK (lifecycle_stage IN ('active', 'deleted')), 
	CONSTRAINT uq_experiments_workspace_name UNIQUE (workspace, name)
);
INSERT INTO experiments VALUES(0,'Default','/srv/mlflow/mlruns/0','active',1794773929361,1794773929361,'default');
INSERT INTO experiments VALUES(1,'digits','/srv/mlflow/mlruns/1','active',1794773929387,1794773929387,'default');
INSERT INTO experiments VALUES(2,'gone','/srv/mlflow/mlruns/2','deleted',1794773930335,1794773930523,'default');
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "experiment_tags" (
	"key" VARCHAR(250) NOT NULL, 
	value TEXT, 
	experiment_id INTEGER NOT NULL, 
	CONSTRAINT experiment_tag_pk PRIMARY KEY ("key", experiment_id), 
	FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id)
);
INSERT INTO experiment_tags VALUES('team','vision',1);
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "runs" (
	run_uuid VARCHAR(32) NOT NULL, 
	name VARCHAR(250), 
	source_type VARCHAR(20), 
	source_name VARCHAR(500), 
	entry_point_name VARCHAR(50), 
	user_id VARCHAR(256), 
	status VARCHAR(9), 
	start_time BIGINT, 
	end_time BIGINT, 
	source_version VARCHAR(50), 
	lifecycle_stage VARCHAR(20), 
	artifact_uri VARCHAR(200), 
	experiment_id INTEGER, deleted_time BIGINT, 
	CONSTRAINT run_pk PRIMARY KEY (run_uuid), 
	CONSTRAINT runs_lifecycle_stage CHECK (lifecycle_stage IN ('active', 'deleted')), 
	CONSTRAINT source_type CHECK (source_type IN ('NOTEBOOK', 'JOB', 'LOCAL', 'UNKNOWN', 'PROJECT')), 
	FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id), 
	CHECK (status IN ('SCHEDULED', 'FAILED', 'FINISHED', 'RUNNING', 'KILLED'))
);
INSERT INTO runs VALUES('06f2ea04b22b4c36a067dffac83152c5','first','UNKNOWN','','','unknown','FINISHED',1700000000000,1700000300000,'','active','/srv/mlflow/mlruns/1/06f2ea04b22b4c36a067dffac83152c5/artifacts',1,NULL);
INSERT INTO runs VALUES('62339ae5cad94f3ebf5444fa6c3c52e9','second','UNKNOWN','','','unknown','FAILED',1700000001000,1700000002000,'','active','/srv/mlflow/mlruns/1/62339ae5cad94f3ebf5444fa6c3c52e9/artifacts',1,NULL);
INSERT INTO runs VALUES('16873a9d174e411da91893f5083ce0bb','deleted','UNKNOWN','','','unknown','KILLED',1700000002000,1700000003000,'','deleted','/srv/mlflow/mlruns/1/16873a9d174e411da91893f5083ce0bb/artifacts',1,1794773930307);
INSERT INTO runs VALUES('295a891916394a06aad90bddd68eb2e4','in gone','UNKNOWN','','','unknown','FINISHED',1700000000000,1700000000010,'','deleted','/srv/mlflow/mlruns/2/295a891916394a06aad90bddd68eb2e4/artifacts',2,1794773930552);
INSERT INTO runs VALUES('0e606817aa1d40e39e0b010dce4e350a','running','UNKNOWN','','','unknown','RUNNING',1700000000009,NULL,'','active','/srv/mlflow/mlruns/0/0e606817aa1d40e39e0b010dce4e350a/artifacts',0,NULL);
INSERT INTO runs VALUES('65bea4bbe3704569b3434dafb1981d0c','with data','UNKNOWN','','','ada','FINISHED',1794773931069,1794773931736,'','active','/srv/mlflow/mlruns/1/65bea4bbe3704569b3434dafb1981d0c/artifacts',1,NULL);
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "metrics" (
	"key" VARCHAR(250) NOT NULL, 
	value FLOAT NOT NULL, 
	timestamp BIGINT NOT NULL, 
	run_uuid VARCHAR(32) NOT NULL, 
	step BIGINT DEFAULT '0' NOT NULL, 
	is_nan BOOLEAN DEFAULT '0' NOT NULL, 
	CONSTRAINT metric_pk PRIMARY KEY ("key", timestamp, step, run_uuid, value, is_nan), 
	FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid), 
	CHECK (is_nan IN (0, 1))
);
INSERT INTO metrics VALUES('loss',2.0,1700000000000,'06f2ea04b22b4c36a067dffac83152c5',0,0);
INSERT INTO metrics VALUES('loss',1.0,1700000001000,'06f2ea04b22b4c36a067dffac83152c5',1,0);
INSERT INTO metrics VALUES('loss',0.66666666666666662965,1700000002000,'06f2ea04b22b4c36a067dffac83152c5',2,0);
INSERT INTO metrics VALUES('loss',0.5,1700000003000,'06f2ea04b22b4c36a067dffac83152c5',3,0);
INSERT INTO metrics VALUES('loss',0.4000000000000000222,1700000004000,'06f2ea04b22b4c36a067dffac83152c5',4,0);
INSERT INTO metrics VALUES('loss',0.33333333333333331482,1700000005000,'06f2ea04b22b4c36a067dffac83152c5',5,0);
INSERT INTO metrics VALUES('loss',0.28571428571428569842,1700000006000,'06f2ea04b22b4c36a067dffac83152c5',6,0);
INSERT INTO metrics VALUES('loss',0.25,1700000007000,'06f2ea04b22b4c36a067dffac83152c5',7,0);
INSERT INTO metrics VALUES('loss',0.22222222222222220988,1700000008000,'06f2ea04b22b4c36a067dffac83152c5',8,0);
INSERT INTO metrics VALUES('loss',0.2000000000000000111,1700000009000,'06f2ea04b22b4c36a067dffac83152c5',9,0);
INSERT INTO metrics VALUES('loss',0.18181818181818182322,1700000010000,'06f2ea04b22b4c36a067dffac83152c5',10,0);
INSERT INTO metrics VALUES('loss',0.16666666666666665741,1700000011000,'06f2ea04b22b4c36a067dffac83152c5',11,0);
INSERT INTO metrics VALUES('loss',0.15384615384615385469,1700000012000,'06f2ea04b22b4c36a067dffac83152c5',12,0);
INSERT INTO metrics VALUES('loss',0.14285714285714284921,1700000013000,'06f2ea04b22b4c36a067dffac83152c5',13,0);
INSERT INTO metrics VALUES('loss',0.13333333333333333148,1700000014000,'06f2ea04b22b4c36a067dffac83152c5',14,0);
INSERT INTO metrics VALUES('loss',0.125,1700000015000,'06f2ea04b22b4c36a067dffac83152c5',15,0);
INSERT INTO metrics VALUES('loss',0.11764705882352941013,1700000016000,'06f2ea04b22b4c36a067dffac83152c5',16,0);
INSERT INTO metrics VALUES('loss',0.11111111111111110494,1700000017000,'06f2ea04b22b4c36a067dffac83152c5',17,0);
INSERT INTO metrics VALUES('loss',0.10526315789473683626,1700000018000,'06f2ea04b22b4c36a067dffac83152c5',18,0);
INSERT INTO metrics VALUES('loss',0.10000000000000000555,1700000019000,'06f2ea04b22b4c36a067dffac83152c5',19,0);
INSERT INTO metrics VALUES('val/acc',0.0,1700000000000,'06f2ea04b22b4c36a067dffac83152c5',0,1);
INSERT INTO metrics VALUES('val/acc',1.7976931348623156223e+308,1700000000001,'06f2ea04b22b4c36a067dffac83152c5',1,0);
INSERT INTO metrics VALUES('val/acc',-1.7976931348623156223e+308,1700000000002,'06f2ea04b22b4c36a067dffac83152c5',2,0);
INSERT INTO metrics VALUES('val/acc',0.5,1700000000003,'06f2ea04b22b4c36a067dffac83152c5',3,0);
INSERT INTO metrics VALUES('loss',1.0,1700000000005,'62339ae5cad94f3ebf5444fa6c3c52e9',0,0);
INSERT INTO metrics VALUES('loss',1.5,1700000000006,'62339ae5cad94f3ebf5444fa6c3c52e9',0,0);
INSERT INTO metrics VALUES('m',1.0,1700000000000,'295a891916394a06aad90bddd68eb2e4',1,0);
INSERT INTO metrics VALUES('m',3.0,1700000000000,'0e606817aa1d40e39e0b010dce4e350a',1,0);
INSERT INTO metrics VALUES('acc',0.69999999999999995559,1700000000000,'65bea4bbe3704569b3434dafb1981d0c',2,0);
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "latest_metrics" (
	"key" VARCHAR(250) NOT NULL, 
	value FLOAT NOT NULL, 
	timestamp BIGINT, 
	step BIGINT NOT NULL, 
	is_nan BOOLEAN NOT NULL, 
	run_uuid VARCHAR(32) NOT NULL, 
	CONSTRAINT latest_metric_pk PRIMARY KEY ("key", run_uuid), 
	FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid), 
	CHECK (is_nan IN (0, 1))
);
INSERT INTO latest_metrics VALUES('loss',0.10000000000000000555,1700000019000,19,0,'06f2ea04b22b4c36a067dffac83152c5');
INSERT INTO latest_metrics VALUES('val/acc',0.5,1700000000003,3,0,'06f2ea04b22b4c36a067dffac83152c5');
INSERT INTO latest_metrics VALUES('loss',1.5,1700000000006,0,0,'62339ae5cad94f3ebf5444fa6c3c52e9');
INSERT INTO latest_metrics VALUES('m',1.0,1700000000000,1,0,'295a891916394a06aad90bddd68eb2e4');
INSERT INTO latest_metrics VALUES('m',3.0,1700000000000,1,0,'0e606817aa1d40e39e0b010dce4e350a');
INSERT INTO latest_metrics VALUES('acc',0.69999999999999995559,1700000000000,2,0,'65bea4bbe3704569b3434dafb1981d0c');
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "params" (
	"key" VARCHAR(250) NOT NULL, 
	value VARCHAR(8000) NOT NULL, 
	run_uuid VARCHAR(32) NOT NULL, 
	CONSTRAINT param_pk PRIMARY KEY ("key", run_uuid), 
	FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid)
);
INSERT INTO params VALUES('lr','0.1','06f2ea04b22b4c36a067dffac83152c5');
INSERT INTO params VALUES('model/depth','12','06f2ea04b22b4c36a067dffac83152c5');
INSERT INTO params VALUES('words','ü – ok','06f2ea04b22b4c36a067dffac83152c5');
INSERT INTO params VALUES('lr','9','16873a9d174e411da91893f5083ce0bb');
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "tags" (
	"key" VARCHAR(250) NOT NULL, 
	value VARCHAR(8000), 
	run_uuid VARCHAR(32) NOT NULL, 
	CONSTRAINT tag_pk PRIMARY KEY ("key", run_uuid), 
	FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid)
);
INSERT INTO tags VALUES('note',replace('a tag\nof two lines','\n',char(10)),'06f2ea04b22b4c36a067dffac83152c5');
INSERT INTO tags VALUES('mlflow.runName','first','06f2ea04b22b4c36a067dffac83152c5');
INSERT INTO tags VALUES('mlflow.runName','second','62339ae5cad94f3ebf5444fa6c3c52e9');
INSERT INTO tags VALUES('mlflow.runName','deleted','16873a9d174e411da91893f5083ce0bb');
INSERT INTO tags VALUES('mlflow.runName','in gone','295a891916394a06aad90bddd68eb2e4');
INSERT INTO tags VALUES('mlflow.runName','running','0e606817aa1d40e39e0b010dce4e350a');
INSERT INTO tags VALUES('mlflow.user','ada','65bea4bbe3704569b3434dafb1981d0c');
INSERT INTO tags VALUES('mlflow.source.name','train.py','65bea4bbe3704569b3434dafb1981d0c');
INSERT INTO tags VALUES('mlflow.source.type','LOCAL','65bea4bbe3704569b3434dafb1981d0c');
INSERT INTO tags VALUES('mlflow.runName','with data','65bea4bbe3704569b3434dafb1981d0c');
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE inputs (
	input_uuid VARCHAR(36) NOT NULL, 
	source_type VARCHAR(36) NOT NULL, 
	source_id VARCHAR(36) NOT NULL, 
	destination_type VARCHAR(36) NOT NULL, 
	destination_id VARCHAR(36) NOT NULL, step BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT inputs_pk PRIMARY KEY (source_type, source_id, destination_type, destination_id)
);
INSERT INTO inputs VALUES('ec62e8190039447792535bdfd94cc896','DATASET','465d3c08dfe143cba933571107619205','RUN','65bea4bbe3704569b3434dafb1981d0c',0);
INSERT INTO inputs VALUES('8e8169e22e9c4c8f89a232131cff3fbe','RUN_OUTPUT','65bea4bbe3704569b3434dafb1981d0c','MODEL_OUTPUT','m-6bf8744e358546198c086550745001fc',2);
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE input_tags (
	input_uuid VARCHAR(36) NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	value VARCHAR(500) NOT NULL, 
	CONSTRAINT input_tags_pk PRIMARY KEY (input_uuid, name)
);
INSERT INTO input_tags VALUES('ec62e8190039447792535bdfd94cc896','mlflow.data.context','training');
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "datasets" (
	dataset_uuid VARCHAR(36) NOT NULL, 
	experiment_id INTEGER NOT NULL, 
	name VARCHAR(500) NOT NULL, 
	digest VARCHAR(36) NOT NULL, 
	dataset_source_type VARCHAR(36) NOT NULL, 
	dataset_source TEXT NOT NULL, 
	dataset_schema TEXT, 
	dataset_profile TEXT, 
	CONSTRAINT dataset_pk PRIMARY KEY (experiment_id, name, digest), 
	CONSTRAINT fk_datasets_experiment_id_experiments FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id) ON DELETE CASCADE
);
INSERT INTO datasets VALUES('465d3c08dfe143cba933571107619205',1,'zeros','2b679e2b','code','{"tags": {"mlflow.user": "ada", "mlflow.source.name": "train.py", "mlflow.source.type": "LOCAL"}}','{"mlflow_tensorspec": {"features": "[{\"type\": \"tensor\", \"tensor-spec\": {\"dtype\": \"float64\", \"shape\": [-1, 2]}}]", "targets": null}}','{"features_shape": [3, 2], "features_size": 6, "features_nbytes": 48}');
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE logged_models (
	model_id VARCHAR(36) NOT NULL, 
	experiment_id INTEGER NOT NULL, 
	name VARCHAR(500) NOT NULL, 
	artifact_location VARCHAR(1000) NOT NULL, 
	creation_timestamp_ms BIGINT NOT NULL, 
	last_updated_timestamp_ms BIGINT NOT NULL, 
	status INTEGER NOT NULL, 
	lifecycle_stage VARCHAR(32), 
	model_type VARCHAR(500), 
	source_run_id VARCHAR(32), 
	status_message VARCHAR(1000), 
	CONSTRAINT logged_models_pk PRIMARY KEY (model_id), 
	CONSTRAINT logged_models_lifecycle_stage_check CHECK (lifecycle_stage IN ('active', 'deleted')), 
	CONSTRAINT fk_logged_models_experiment_id FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id) ON DELETE CASCADE
);
INSERT INTO logged_models VALUES('m-6bf8744e358546198c086550745001fc',1,'net','/srv/mlflow/mlruns/1/models/m-6bf8744e358546198c086550745001fc/artifacts',1794773931322,1794773931640,2,'active','toy','65bea4bbe3704569b3434dafb1981d0c',NULL);
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE logged_model_params (
	model_id VARCHAR(36) NOT NULL, 
	experiment_id INTEGER NOT NULL, 
	param_key VARCHAR(255) NOT NULL, 
	param_value TEXT NOT NULL, 
	CONSTRAINT logged_model_params_pk PRIMARY KEY (model_id, param_key), 
	CONSTRAINT fk_logged_model_params_experiment_id FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id), 
	CONSTRAINT fk_logged_model_params_model_id FOREIGN KEY(model_id) REFERENCES logged_models (model_id) ON DELETE CASCADE
);
INSERT INTO logged_model_params VALUES('m-6bf8744e358546198c086550745001fc',1,'p','1');
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE logged_model_tags (
	model_id VARCHAR(36) NOT NULL, 
	experiment_id INTEGER NOT NULL, 
	tag_key VARCHAR(255) NOT NULL, 
	tag_value TEXT NOT NULL, 
	CONSTRAINT logged_model_tags_pk PRIMARY KEY (model_id, tag_key), 
	CONSTRAINT fk_logged_model_tags_experiment_id FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id), 
	CONSTRAINT fk_logged_model_tags_model_id FOREIGN KEY(model_id) REFERENCES logged_models (model_id) ON DELETE CASCADE
);
INSERT INTO logged_model_tags VALUES('m-6bf8744e358546198c086550745001fc',1,'mlflow.user','ada');
INSERT INTO logged_model_tags VALUES('m-6bf8744e358546198c086550745001fc',1,'mlflow.source.name','train.py');
INSERT INTO logged_model_tags VALUES('m-6bf8744e358546198c086550745001fc',1,'mlflow.source.type','LOCAL');
INSERT INTO logged_model_tags VALUES('m-6bf8744e358546198c086550745001fc',1,'k','v');
COMMIT;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE logged_model_metrics (
	model_id VARCHAR(36) NOT NULL, 
	metric_name VARCHAR(500) NOT NULL, 
	metric_timestamp_ms BIGINT NOT NULL, 
	metric_step BIGINT NOT NULL, 
	metric_value FLOAT, 
	experiment_id INTEGER NOT NULL, 
	run_id VARCHAR(32) NOT NULL, 
	dataset_uuid VARCHAR(36), 
	dataset_name VARCHAR(500), 
	dataset_digest VARCHAR(36), 
	CONSTRAINT logged_model_metrics_pk PRIMARY KEY (model_id, metric_name, metric_timestamp_ms, metric_step, run_id), 
	CONSTRAINT fk_logged_model_metrics_experiment_id FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id), 
	CONSTRAINT fk_logged_model_metrics_model_id FOREIGN KEY(model_id) REFERENCES logged_models (model_id) ON DELETE CASCADE, 
	CONSTRAINT fk_logged_model_metrics_run_id FOREIGN KEY(run_id) REFERENCES runs (run_uuid) ON DELETE CASCADE
);
INSERT INTO logged_model_metrics VALUES('m-6bf8744e358546198c086550745001fc','acc',1700000000000,2,0.69999999999999995559,1,'65bea4bbe3704569b3434dafb1981d0c',NULL,NULL,NULL);
COMMIT;

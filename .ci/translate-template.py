"""Prints a SAM template as CloudFormation sees it: after the SAM transform."""

import json
import sys

import boto3
from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

with open(sys.argv[1], encoding="utf-8") as file:
    template = yaml_parse(file.read())
for resource in template["Resources"].values():
    if resource["Type"] == "AWS::Serverless::Function":
        # The transform requires uploaded code, but nothing reads it here.
        resource["Properties"]["CodeUri"] = "s3://placeholder/code.zip"
translator = Translator({}, Parser(), boto_session=boto3.Session())
json.dump(translator.translate(template, {}), sys.stdout, indent=2)

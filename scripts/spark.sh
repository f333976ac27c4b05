#!/usr/bin/env bash
# Asks Spark, in local mode, what the published tables of the golden lake say, and runs docs/how-to/spark.ipynb on them.
# Needs Java 17 or later, Maven and the packages of test/python/requirements-spark.txt; without them it says so and is done.
# `scripts/spark.sh --write` keeps the outputs of the notebook instead of comparing them.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
  echo "Spark is not asked: $1"
  exit 0
}

command -v java >/dev/null || skip 'no Java'
[ "$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)" -ge 17 ] || skip 'Java is older than 17'
command -v mvn >/dev/null || skip 'no Maven'
python=$(timeout 600 scripts/peers.sh spark) || skip 'no PySpark'

# The jars of Delta Lake for that Spark, each by its digest.
repository=$PWD/.cache/maven
jars=()
while read -r digest group name version; do
  jar=$repository/${group//.//}/$name/$version/$name-$version.jar
  [ -f "$jar" ] || timeout 300 mvn -q -B -Dmaven.repo.local="$repository" dependency:get -Dtransitive=false \
    -Dartifact="$group:$name:$version" >/dev/null 2>&1 || skip "no $name $version"
  echo "$digest  $jar" | sha256sum --check --quiet
  jars+=("$jar")
done <test/python/spark-jars.txt

export SPARK_JARS PITLAKE_SPARK=$python PITLAKE_SPARK_WRITE=${1:-}
SPARK_JARS=$(IFS=, && echo "${jars[*]}")
vitest run test/views/spark.test.ts

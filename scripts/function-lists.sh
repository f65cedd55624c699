#!/usr/bin/env bash
# Writes src/statement/functions/*.txt: what the scanner knows of each dialect's built-in functions.
#
#   PSQL='psql -h .. -U superuser -d scratch' MARIADB='mariadb -uroot -S ..' SQLITE='sqlite3' scripts/function-lists.sh
#
# Starts no server. PSQL must be a superuser of a scratch database in which extensions may be created (contrib installed);
# each of the three commands may be left out, then that dialect's files stay as they are.
#
#   DIALECT.pure.txt     change nothing, on any node; a statement that calls only these is a pure read
#   DIALECT.primary.txt  need the primary
#   DIALECT.session.txt  need the primary and leave something behind in the session
#   DIALECT.syntax.txt   words of the grammar that may stand before a parenthesis and are no functions
#
# One lower-case name a line, in order.
set -euo pipefail
export LC_ALL=C
OUT=$(cd "$(dirname "$0")/.." && pwd)/src/statement/functions
mkdir -p "$OUT"

lines() { # words -> one lower-case name a line
  tr '[:upper:]' '[:lower:]' | tr -s '[:space:]' '\n' | sed '/^$/d' | sort -u
}
without() { # the names on stdin that none of the files holds
  comm -23 - <(sort -u "$@")
}
write() { # DIALECT
  local list
  for list in pure primary session syntax; do cp "$TMP/$list" "$OUT/$1.$list.txt"; done
}
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT

# ---- PostgreSQL ---------------------------------------------------------------------------------------------------

postgres_session() {
  # locks that outlive the transaction, and their release
  echo pg_advisory_lock pg_advisory_lock_shared pg_try_advisory_lock pg_try_advisory_lock_shared
  echo pg_advisory_unlock pg_advisory_unlock_shared pg_advisory_unlock_all
  # settings; set_config is local only if its third argument says so, which may be a parameter
  echo set_config setseed set_limit isn_weak
  # what the session does for replication
  echo pg_replication_origin_session_setup pg_replication_origin_session_reset
  # named connections and curl options
  echo dblink_connect dblink_connect_u dblink_disconnect dblink_open dblink_close
  echo http_set_curlopt http_reset_curlopt
}

postgres_primary() {
  # PSQL says all that are volatile; these are not, or belong to other versions or to extensions.
  # ids of transactions, which a standby does not hand out
  echo txid_current txid_current_if_assigned txid_current_snapshot txid_status
  echo pg_current_xact_id pg_current_xact_id_if_assigned pg_current_snapshot pg_xact_status
  # this session: its process, its temporary schema, its channels, cursors, prepared statements
  echo pg_backend_pid pg_my_temp_schema pg_listening_channels pg_cursor pg_prepared_statement
  # server control of versions before 15
  echo pg_start_backup pg_stop_backup pg_switch_xlog pg_xlog_replay_pause pg_xlog_replay_resume
  echo pg_current_xlog_location pg_current_xlog_insert_location pg_current_xlog_flush_location
  echo pg_last_xlog_receive_location pg_last_xlog_replay_location pg_is_xlog_replay_paused
  # and of versions after it
  echo pg_log_standby_snapshot pg_sync_replication_slots pg_stat_reset_backend_stats
  echo pg_restore_relation_stats pg_clear_relation_stats pg_restore_attribute_stats pg_clear_attribute_stats
  echo pg_available_wal_summaries pg_wal_summary_contents pg_get_wal_summarizer_state pg_stat_get_backend_io
  # extensions: other databases and the network
  echo dblink dblink_exec dblink_send_query dblink_get_result dblink_get_connections dblink_cancel_query
  echo dblink_is_busy dblink_error_message dblink_fetch dblink_get_notify dblink_build_sql_insert
  echo dblink_build_sql_update dblink_build_sql_delete
  echo postgres_fdw_disconnect postgres_fdw_disconnect_all postgres_fdw_get_connections
  echo http http_get http_post http_put http_patch http_delete http_head http_collect_response
  # extensions: files, caches, statistics, storage
  echo pg_file_write pg_file_sync pg_file_rename pg_file_unlink pg_logdir_ls
  echo pg_prewarm autoprewarm_start_worker autoprewarm_dump_now pg_buffercache_evict
  echo pg_stat_statements_reset pg_truncate_visibility_map heap_force_kill heap_force_freeze
  # extensions: tables made and changed by functions
  echo addgeometrycolumn dropgeometrycolumn dropgeometrytable updategeometrysrid populate_geometry_columns
  echo create_hypertable drop_chunks compress_chunk decompress_chunk add_retention_policy add_compression_policy
}

# Volatile only because their results vary.
postgres_volatile_but_pure() {
  echo random random_normal clock_timestamp timeofday current_query gen_random_uuid uuidv4 uuidv7
  echo pg_sleep pg_sleep_for pg_sleep_until
  echo pg_relation_size pg_table_size pg_indexes_size pg_total_relation_size pg_database_size pg_tablespace_size
}

postgres_pure_elsewhere() {
  # versions after 15, and functions that the grammar makes
  echo any_value array_reverse array_sample array_shuffle array_sort casefold crc32 crc32c date_add date_subtract
  echo erf erfc gamma lgamma has_largeobject_privilege json json_array json_arrayagg json_exists json_object
  echo json_objectagg json_query json_scalar json_serialize json_table json_value merge_action pg_basetype
  echo pg_column_toast_chunk_id pg_get_acl pg_input_error_info pg_input_is_valid system_user to_bin to_oct
  echo unicode_assigned unicode_version icu_unicode_version uuid_extract_timestamp uuid_extract_version
  # sampling methods of contrib
  echo system_rows system_time
  # pgvector
  echo binary_quantize cosine_distance hamming_distance inner_product jaccard_distance l1_distance l2_distance
  echo l2_norm l2_normalize sparsevec subvector vector vector_dims vector_norm halfvec
  # TimescaleDB
  echo time_bucket time_bucket_gapfill locf interpolate approximate_row_count hypertable_size
  # PostGIS, besides the names that MySQL has too
  echo box2d box3d find_srid geography geometry geometrytype getproj4text postgis_full_version postgis_lib_version
  echo postgis_version st_3ddistance st_3ddwithin st_addpoint st_angle st_asewkb st_asewkt st_asgml st_ashexewkb
  echo st_askml st_aslatlontext st_asmvt st_asmvtgeom st_assvg st_astwkb st_azimuth st_bdpolyfromtext st_boundary
  echo st_boundingdiagonal st_buildarea st_chaikinsmoothing st_clipbybox2d st_closestpoint st_clusterdbscan
  echo st_clusterintersecting st_clusterkmeans st_clusterwithin st_collectionextract st_collectionhomogenize
  echo st_concavehull st_containsproperly st_coorddim st_coveredby st_covers st_curvetoline st_delaunaytriangles
  echo st_dfullywithin st_distancesphere st_distancespheroid st_dump st_dumppoints st_dumprings st_dumpsegments
  echo st_dwithin st_estimatedextent st_expand st_extent st_flipcoordinates st_force2d st_force3d st_force3dz
  echo st_forcepolygonccw st_forcepolygoncw st_generatepoints st_geogfromtext st_geogfromwkb st_geographyfromtext
  echo st_geomfromewkb st_geomfromewkt st_geomfromgml st_geomfromkml st_geomfromtwkb st_hexagon st_hexagongrid
  echo st_interpolatepoint st_isvalidreason st_isvaliddetail st_lengthspheroid st_line_interpolate_point
  echo st_linefrommultipoint st_linelocatepoint st_linemerge st_linesubstring st_linetocurve st_longestline
  echo st_makebox2d st_makeline st_makepoint st_makepointm st_makepolygon st_makevalid st_maxdistance st_memsize
  echo st_minimumboundingcircle st_minimumboundingradius st_multi st_ndims st_node st_normalize st_npoints st_nrings
  echo st_offsetcurve st_orderingequals st_perimeter st_pointinsidecircle st_points st_polygon st_polygonize
  echo st_project st_quantizecoordinates st_reduceprecision st_relate st_removepoint st_removerepeatedpoints
  echo st_reverse st_rotate st_scale st_segmentize st_setpoint st_setsrid st_sharedpaths st_shiftlongitude
  echo st_shortestline st_simplifypreservetopology st_simplifyvw st_snap st_snaptogrid st_split st_square
  echo st_squaregrid st_subdivide st_summary st_tileenvelope st_translate st_transscale st_unaryunion
  echo st_voronoilines st_voronoipolygons st_wrapx st_xmax st_xmin st_ymax st_ymin st_z st_zmax st_zmin
}

# Unreserved words that the grammar puts before a parenthesis; the server tells the others.
postgres_syntax() {
  echo analyze at by columns content cube cycle document escape explain filter first key last materialized nested
  echo nulls of operator over partition passing path percent plan preceding following range recursive repeatable
  echo rollup rows search second set sets system bernoulli ties uescape varying within without zone
}

postgres() {
  local ask="$PSQL -X -A -t -q -v ON_ERROR_STOP=1"
  # what SQL can call: no argument or result of type internal, no trigger function
  local callable="prokind <> 'p' AND 'internal'::regtype::oid <> ALL (proargtypes)
    AND prorettype NOT IN ('internal'::regtype, 'trigger'::regtype, 'event_trigger'::regtype)"
  local extensions='pg_trgm uuid-ossp pgcrypto unaccent hstore ltree citext cube earthdistance fuzzystrmatch intarray
    isn seg intagg btree_gin btree_gist sslinfo'
  local extension
  for extension in $extensions; do $ask -c "CREATE EXTENSION IF NOT EXISTS \"$extension\"" 2>/dev/null; done
  postgres_session | lines > "$TMP/session"
  postgres_volatile_but_pure | lines > "$TMP/volatile_but_pure"
  {
    postgres_primary
    $ask -c "SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND provolatile = 'v' AND $callable"
  } | lines | without "$TMP/session" "$TMP/volatile_but_pure" > "$TMP/primary"
  {
    cat "$TMP/volatile_but_pure"
    postgres_pure_elsewhere
    mysql_geometry | tr -s '[:space:]' '\n' | grep '^st_'
    $ask -c "SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND $callable"
    # functions of extensions that have no effects; delete(hstore) has a name that others use for deleting
    $ask -c "SELECT proname FROM pg_proc JOIN pg_depend ON objid = pg_proc.oid AND deptype = 'e'
      AND classid = 'pg_proc'::regclass AND refclassid = 'pg_extension'::regclass
      JOIN pg_extension e ON e.oid = refobjid
      WHERE extname = ANY (string_to_array(regexp_replace('$extensions', '\s+', ' ', 'g'), ' '))
      AND proname <> 'delete' AND $callable"
  } | lines | without "$TMP/session" "$TMP/primary" > "$TMP/pure"
  { postgres_syntax; $ask -c "SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'"; } | lines > "$TMP/syntax"
  write postgres
}

# ---- MySQL and MariaDB --------------------------------------------------------------------------------------------

mysql_session() {
  # locks that belong to the session, and their release
  echo get_lock release_lock release_all_locks
  echo service_get_read_locks service_get_write_locks service_release_locks
  echo version_tokens_lock_shared version_tokens_lock_exclusive version_tokens_unlock
}

mysql_primary() {
  # who holds a lock: known only where it is taken
  echo is_free_lock is_used_lock
  # what this connection did before
  echo last_insert_id found_rows row_count connection_id ps_current_thread_id
  # sequences, and numbers that a server hands out
  echo nextval lastval setval uuid_short
  # files of one server
  echo load_file
  # positions, waiting for them, and replication control
  echo binlog_gtid_pos master_gtid_wait master_pos_wait source_pos_wait wait_for_executed_gtid_set
  echo wait_until_sql_thread_after_gtids wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid
  echo asynchronous_connection_failover_add_managed asynchronous_connection_failover_add_source
  echo asynchronous_connection_failover_delete_managed asynchronous_connection_failover_delete_source
  echo asynchronous_connection_failover_reset group_replication_set_as_primary group_replication_switch_to_multi_primary_mode
  echo group_replication_switch_to_single_primary_mode group_replication_set_write_concurrency
  echo group_replication_set_communication_protocol group_replication_disable_member_action
  echo group_replication_enable_member_action group_replication_reset_member_actions
  # keys, tokens, audit and other servers
  echo keyring_key_generate keyring_key_remove keyring_key_store version_tokens_delete version_tokens_edit
  echo version_tokens_set audit_log_encryption_password_set audit_log_filter_set_filter audit_log_filter_set_user
  echo audit_log_filter_remove_filter audit_log_filter_remove_user audit_log_filter_flush audit_log_rotate
  echo spider_direct_sql spider_bg_direct_sql spider_copy_tables spider_flush_table_mon_cache
  # user-defined functions that are widely installed and start programs
  echo sys_exec sys_eval sys_set http_get http_post
}

mysql_geometry() {
  echo area asbinary astext aswkb aswkt boundary buffer centroid contains convexhull crosses dimension disjoint
  echo distance endpoint envelope equals exteriorring geomcollfromtext geomcollfromwkb geometrycollection
  echo geometrycollectionfromtext geometrycollectionfromwkb geometryfromtext geometryfromwkb geometryn geometrytype
  echo geomfromtext geomfromwkb glength interiorringn intersects isclosed isempty isring issimple linefromtext
  echo linefromwkb linestring linestringfromtext linestringfromwkb mbrcontains mbrcoveredby mbrcovers mbrdisjoint
  echo mbrequal mbrequals mbrintersects mbroverlaps mbrtouches mbrwithin mlinefromtext mlinefromwkb mpointfromtext
  echo mpointfromwkb mpolyfromtext mpolyfromwkb multilinestring multilinestringfromtext multilinestringfromwkb
  echo multipoint multipointfromtext multipointfromwkb multipolygon multipolygonfromtext multipolygonfromwkb
  echo numgeometries numinteriorrings numpoints overlaps point pointfromtext pointfromwkb pointn pointonsurface
  echo polyfromtext polyfromwkb polygon polygonfromtext polygonfromwkb srid startpoint touches within x y
  echo st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_boundary st_buffer st_buffer_strategy
  echo st_centroid st_collect st_contains st_convexhull st_crosses st_difference st_dimension st_disjoint st_distance
  echo st_distance_sphere st_endpoint st_envelope st_equals st_exteriorring st_frechetdistance st_geohash
  echo st_geomcollfromtext st_geomcollfromtxt st_geomcollfromwkb st_geometrycollectionfromtext
  echo st_geometrycollectionfromwkb st_geometryfromtext st_geometryfromwkb st_geometryn st_geometrytype
  echo st_geomfromgeojson st_geomfromtext st_geomfromwkb st_hausdorffdistance st_interiorringn st_intersection
  echo st_intersects st_isclosed st_isempty st_isring st_issimple st_isvalid st_latfromgeohash st_latitude st_length
  echo st_linefromtext st_linefromwkb st_lineinterpolatepoint st_lineinterpolatepoints st_linestringfromtext
  echo st_linestringfromwkb st_longfromgeohash st_longitude st_makeenvelope st_mlinefromtext st_mlinefromwkb
  echo st_mpointfromtext st_mpointfromwkb st_mpolyfromtext st_mpolyfromwkb st_multilinestringfromtext
  echo st_multilinestringfromwkb st_multipointfromtext st_multipointfromwkb st_multipolygonfromtext
  echo st_multipolygonfromwkb st_numgeometries st_numinteriorring st_numinteriorrings st_numpoints st_overlaps
  echo st_pointatdistance st_pointfromgeohash st_pointfromtext st_pointfromwkb st_pointn st_pointonsurface
  echo st_polyfromtext st_polyfromwkb st_polygonfromtext st_polygonfromwkb st_relate st_simplify st_srid
  echo st_startpoint st_swapxy st_symdifference st_touches st_transform st_union st_validate st_within st_x st_y
}

mysql_pure() {
  mysql_geometry
  # functions of both servers that MariaDB's information_schema leaves out
  echo ascii atan avg char charset collate column_add column_create column_delete column_get convert current_date
  echo current_role current_time current_timestamp current_user curtime date day default dayofmonth get_format
  echo hour if insert interval json_schema_valid json_table left localtime localtimestamp minute month
  echo pi position procedure quarter rand repeat replace right row_number rownum second sysdate time timestamp
  echo timestampadd timestampdiff truncate user utc_date utc_time utc_timestamp value values weight_string year
  # MySQL alone
  echo any_value bin_to_uuid can_access_column can_access_database can_access_table can_access_user can_access_view
  echo current_user format_bytes format_pico_time grouping gtid_subset gtid_subtract icu_version
  echo json_array_append json_array_insert json_merge_patch json_pretty json_storage_free json_storage_size
  echo json_schema_validation_report json_value member ps_thread_id random_bytes regexp_like roles_graphml
  echo statement_digest statement_digest_text tempname uuid_to_bin uuid_to_unixtime vector_dim string_to_vector
  echo to_vector from_vector vector_to_string validate_password_strength mbrequal distance_sphere
  echo get_dd_column_privileges get_dd_create_options get_dd_index_sub_part_length internal_table_rows
  # MariaDB alone, newer than 10.11
  echo uuid_v4 uuid_v7 vec_distance vec_distance_cosine vec_distance_euclidean vec_fromtext vec_totext
  echo last_value json_key_value json_object_filter_keys json_object_to_array json_array_intersect to_number to_date
  echo kdf conv decode encode des_decrypt des_encrypt old_password trim_oracle
}

mysql_syntax() {
  echo against all analyze and any array as between by case check columns condition connection corresponding cross
  echo cube cycle delayed distinct distinctrow div duplicate else end escape except exists explain fields first following for
  echo force from full group having high_priority ignore in index inner intersect into is join key keys last lateral
  echo leading like limit lines lock match materialized minus mod natural nested not nulls of offset on option or
  echo order ordinality outer over partition partitions path preceding read recursive regexp references restrict
  echo return returning rlike rollup row rows select separator set sets some soname sounds sql_big_result
  echo sql_buffer_result sql_cache sql_calc_found_rows sql_no_cache sql_small_result straight_join table then to
  echo trailing both union unique update use using value values when where window with within xor _binary _latin1
  echo _utf8 _utf8mb3 _utf8mb4 binary
  # types: CONVERT(a, DECIMAL(10, 2)), and the columns of JSON_TABLE
  echo bigint bit blob boolean character datetime dec decimal double enum fixed float inet4 inet6 int integer
  echo longblob longtext mediumblob mediumint mediumtext national nchar numeric nvarchar real signed smallint text
  echo tinyblob tinyint tinytext unsigned uuid varbinary varchar varying vector
}

mysql() {
  mysql_session | lines > "$TMP/session"
  mysql_primary | lines | without "$TMP/session" > "$TMP/primary"
  { mysql_pure; $MARIADB -N -B -e 'SELECT `FUNCTION` FROM information_schema.SQL_FUNCTIONS'; } |
    lines | without "$TMP/session" "$TMP/primary" > "$TMP/pure"
  mysql_syntax | lines > "$TMP/syntax"
  write mysql
}

# ---- SQLite -------------------------------------------------------------------------------------------------------

sqlite_session() { echo load_extension; }

# What this connection did before; files; a full-text tokenizer is a pointer into the process.
sqlite_primary() {
  echo last_insert_rowid changes total_changes readfile writefile edit fsdir fts3_tokenizer optimize
}

sqlite_pure() {
  # extensions of SQLite's own, and versions after 3.40
  echo bm25 highlight snippet matchinfo offsets rtreecheck rtreedepth rtreenode geopoly_area geopoly_bbox geopoly_blob
  echo geopoly_ccw geopoly_contains_point geopoly_group_bbox geopoly_json geopoly_overlap geopoly_regular geopoly_svg
  echo geopoly_within geopoly_xform soundex regexp match sqlite_offset spellfix1_editdist editdist3
  echo concat concat_ws if json_error_position json_pretty json_array_insert jsonb jsonb_array jsonb_array_insert
  echo jsonb_each jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_patch
  echo jsonb_remove jsonb_replace jsonb_set jsonb_tree median octet_length percentile percentile_cont percentile_disc
  echo string_agg timediff unhex unistr unistr_quote
  # table-valued functions
  echo json_each json_tree generate_series
  echo pragma_collation_list pragma_compile_options pragma_database_list pragma_foreign_key_check
  echo pragma_foreign_key_list pragma_function_list pragma_index_info pragma_index_list pragma_index_xinfo
  echo pragma_integrity_check pragma_module_list pragma_pragma_list pragma_quick_check pragma_table_info
  echo pragma_table_list pragma_table_xinfo
  # a type, in CAST and in column definitions, reads like a call
  echo varchar char decimal numeric
}

sqlite_syntax() {
  echo all and as between by case cast check collate cross default distinct else end escape except exists explain filter first
  echo following from glob group having in indexed inner intersect into is isnull join key last left like limit match
  echo materialized natural not notnull null nulls of offset on or order outer over partition preceding primary raise
  echo range recursive references regexp returning right row rows select set table then to union unique using values
  echo when where window with
}

sqlite() {
  sqlite_session | lines > "$TMP/session"
  sqlite_primary | lines > "$TMP/primary"
  { sqlite_pure; $SQLITE :memory: "SELECT name FROM pragma_function_list WHERE builtin AND name GLOB '[a-z]*'"; } |
    lines | grep -vx sqlite_log | without "$TMP/session" "$TMP/primary" > "$TMP/pure"
  sqlite_syntax | lines > "$TMP/syntax"
  write sqlite
}

[[ -z ${PSQL:-} ]] || postgres
[[ -z ${MARIADB:-} ]] || mysql
[[ -z ${SQLITE:-} ]] || sqlite
wc -l "$OUT"/*.txt

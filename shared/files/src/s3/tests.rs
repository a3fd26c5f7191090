//! The requests to S3, checked with a server that records them and returns given responses.

use std::sync::{Arc, Mutex};

use object_store::{Error, GetOptions, GetRange, ObjectStoreExt as _, PutMode, PutOptions, TagSet};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use payments_boot::Lookup;

use super::*;
use crate::{Storage, StorageError};

/// One response: its status, headers and body.
type Answer = (&'static str, &'static str, &'static str);

/// Starts a server that gives these responses, one per request. Returns its URL and the requests.
async fn serve(answers: Vec<Answer>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        for (status, headers, body) in answers {
            let (mut connection, _) = listener.accept().await.unwrap();
            let request = read(&mut connection).await;
            seen.lock().unwrap().push(request);
            let length = body.len();
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}");
            connection.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, asked)
}

/// Reads one request with its body.
async fn read(connection: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        connection.read_buf(&mut bytes).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
    }
}

/// The bucket of a server, with the credentials of a role.
fn bucket(url: &str) -> Arc<dyn ObjectStore> {
    below(&Path::from("billing"), whole_bucket(url))
}

fn whole_bucket(url: &str) -> Arc<AmazonS3> {
    let builder = AmazonS3Builder::new()
        .with_bucket_name("reports")
        .with_region("eu-west-2")
        .with_access_key_id("ASIAEXAMPLE")
        .with_secret_access_key("secret")
        .with_token("the-session-token")
        .with_endpoint(url)
        .with_allow_http(true);
    Arc::new(bounded(builder, Duration::from_secs(10)).unwrap())
}

/// A folder, and its files.
fn folder() -> (tempfile::TempDir, crate::LinkedFiles) {
    let folder = tempfile::tempdir().unwrap();
    let storage: Storage = format!("file://{}", folder.path().display()).parse().unwrap();
    let files = storage.open_with_links("REPORTS_URL", &Lookup::new(&|_| None)).unwrap();
    (folder, files)
}

/// The paths below `reports` that follow `reports/a`, two at most.
async fn two_after_a(files: &crate::LinkedFiles) -> Vec<String> {
    let listed = files.list("reports", "reports/a", 2).await.unwrap();
    listed.into_iter().map(|file| file.location.to_string()).collect()
}

fn header<'r>(request: &'r str, name: &str) -> Option<&'r str> {
    request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The put of a file that must be new, with a tag.
fn tagged() -> PutOptions {
    let mut tags = TagSet::default();
    tags.push("kept-days", "3650");
    PutOptions { mode: PutMode::Create, tags, ..PutOptions::default() }
}

const THERE_ALREADY: Answer = ("412 Precondition Failed", "", "<Error><Code>PreconditionFailed</Code></Error>");
const UNAVAILABLE: Answer = ("503 Slow Down", "", "<Error><Code>SlowDown</Code></Error>");

/// A final file is one conditional put, and never an upload in parts, which S3 would complete over an existing file.
#[tokio::test]
async fn what_is_final_never_overwrites_and_takes_one_request() {
    let put = ("200 OK", "etag: \"v1\"\r\n", "");
    for (answer, is_there) in [(put, false), (THERE_ALREADY, true)] {
        let (url, asked) = serve(vec![answer]).await;
        let done = bucket(&url).put_opts(&Path::from("reports/1"), "abcdef".into(), tagged()).await;
        assert_eq!(matches!(done, Err(Error::AlreadyExists { .. })), is_there, "{done:?}");
        assert_eq!(done.is_ok(), !is_there, "{done:?}");
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(asked[0].starts_with("PUT /reports/billing/reports/1 "), "{}", asked[0]);
        assert_eq!((header(&asked[0], "if-none-match"), header(&asked[0], "content-length")), (Some("*"), Some("6")));
        assert_eq!(header(&asked[0], "x-amz-tagging"), Some("kept-days=3650"));
        assert_eq!(header(&asked[0], "x-amz-checksum-sha256"), Some("vvV+x/U6bUC+tkCngKY5yDvCmsipgW8fxsXG3Nk8RyE="));
    }
}

#[tokio::test]
async fn requests_are_signed_and_files_are_read_by_range_and_version() {
    let etag = "etag: \"v1\"\r\nlast-modified: Fri, 20 Nov 2026 09:00:00 GMT\r\n";
    let piece = "etag: \"v1\"\r\nlast-modified: Fri, 20 Nov 2026 09:00:00 GMT\r\ncontent-range: bytes 2-5/8\r\n";
    let (url, asked) = serve(vec![("200 OK", etag, ""), ("206 Partial Content", piece, "cdef")]).await;
    let files = bucket(&url);
    files.put(&Path::from("a"), "abcdefgh".into()).await.unwrap();
    let range = Some(GetRange::Bounded(2..6));
    let options = GetOptions { range, if_match: Some("\"v1\"".to_owned()), ..GetOptions::default() };
    let got = files.get_opts(&Path::from("a"), options).await.unwrap().bytes().await.unwrap();
    assert_eq!(&got[..], b"cdef");
    let asked = asked.lock().unwrap();
    for request in asked.iter() {
        assert_eq!(header(request, "x-amz-security-token"), Some("the-session-token"), "{request}");
        let signed = header(request, "authorization").unwrap_or_default();
        assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=ASIAEXAMPLE/"), "{request}");
        assert!(signed.contains("/eu-west-2/s3/aws4_request"), "{request}");
    }
    assert!(asked[0].starts_with("PUT /reports/billing/a ") && asked[0].ends_with("\r\n\r\nabcdefgh"), "{}", asked[0]);
    assert_eq!(header(&asked[1], "range"), Some("bytes=2-5"), "{}", asked[1]);
    assert_eq!(header(&asked[1], "if-match"), Some("\"v1\""), "{}", asked[1]);
}

#[tokio::test]
async fn an_address_names_the_file_and_is_signed_for_a_minute() {
    // No call is made, so no server is needed.
    let files = crate::LinkedFiles::for_bucket(whole_bucket("http://127.0.0.1:9"), Path::from("billing"));
    let path = "reports/2026-11-20T010203Z--2026-11-20T020203Z-run-000042.csv.gz";
    let link = files.link(path, Duration::from_secs(60)).await.unwrap().unwrap();
    let (address, query) = link.split_once('?').unwrap();
    assert_eq!(address, format!("http://127.0.0.1:9/reports/billing/{path}"));
    for part in
        ["X-Amz-Expires=60", "X-Amz-Security-Token=the-session-token", "X-Amz-SignedHeaders=host", "X-Amz-Signature="]
    {
        assert!(query.contains(part), "{part}: {query}");
    }
    assert!(query.contains("X-Amz-Credential=ASIAEXAMPLE%2F") && !query.contains("secret"), "{query}");
    let (_folder, files) = folder();
    assert!(files.link(path, Duration::from_secs(60)).await.unwrap().is_none());
}

#[tokio::test]
async fn files_are_listed_in_the_order_of_their_paths() {
    let (_folder, files) = folder();
    for path in ["reports/c", "reports/a", "reports/d", "reports/b", "journal/b", "reports-old/b"] {
        files.store().put(&Path::from(path), "1".into()).await.unwrap();
    }
    assert_eq!(two_after_a(&files).await, ["reports/b", "reports/c"]);
    let content = |name: &str| {
        format!(
            "<Contents><Key>billing/reports/{name}</Key><Size>1</Size><LastModified>2026-11-20T09:00:00.000Z</LastModified></Contents>"
        )
    };
    let page = format!(
        "<ListBucketResult>{}{}<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
        content("b"),
        content("c")
    );
    let (url, asked) = serve(vec![("200 OK", "", page.leak())]).await;
    let files = crate::LinkedFiles::for_bucket(whole_bucket(&url), Path::from("billing"));
    assert_eq!(two_after_a(&files).await, ["reports/b", "reports/c"]);
    let asked = asked.lock().unwrap();
    // One call, although there are more files; and with the prefix that the console's role may list.
    assert_eq!(asked.len(), 1);
    for part in ["list-type=2", "prefix=billing%2Freports%2F", "start-after=billing%2Freports%2Fa"] {
        assert!(asked[0].contains(part), "{part}: {}", asked[0]);
    }
}

#[tokio::test]
async fn calls_to_s3_are_retried_twice() {
    let put = ("200 OK", "etag: \"v1\"\r\n", "");
    let (url, asked) = serve(vec![UNAVAILABLE, UNAVAILABLE, put]).await;
    bucket(&url).put(&Path::from("a"), "abc".into()).await.unwrap();
    assert_eq!(asked.lock().unwrap().len(), 3);
    let (url, asked) = serve(vec![UNAVAILABLE; 5]).await;
    assert!(bucket(&url).put(&Path::from("a"), "abc".into()).await.is_err());
    assert_eq!(asked.lock().unwrap().len(), 3);
}

#[test]
fn storage_is_parsed_from_its_url() {
    let s3 = |bucket: &str, prefix: &str| Ok(Storage::S3 { bucket: bucket.to_owned(), prefix: Path::from(prefix) });
    for (url, want) in [
        ("s3://a-bank.reports", s3("a-bank.reports", "")),
        ("s3://bucket/", s3("bucket", "")),
        ("s3://bucket/billing/uk", s3("bucket", "billing/uk")),
        ("file:///var/reports", Ok(Storage::Folder("/var/reports".into()))),
        ("s3://", Err(StorageError)),
        ("s3:///prefix", Err(StorageError)),
        ("s3://Bucket", Err(StorageError)),
        ("s3://bucket/a//b", Err(StorageError)),
        ("file://relative", Err(StorageError)),
        ("file:///", Err(StorageError)),
        ("/var/reports", Err(StorageError)),
    ] {
        assert_eq!(url.parse::<Storage>(), want, "{url}");
    }
}

#[test]
fn missing_credentials_are_a_configuration_error() {
    let set = |name: &str| (name == "AWS_REGION").then(|| "eu-west-2".to_owned());
    let storage: Storage = "s3://bucket".parse().unwrap();
    let error = storage.open("REPORTS_URL", &Lookup::new(&set)).unwrap_err().to_string();
    assert_eq!(
        error,
        "the environment variable AWS_ACCESS_KEY_ID is not set; set it to the credentials of the function's role, which Lambda sets"
    );
}

#[tokio::test]
async fn a_folder_holds_only_complete_files() {
    let folder = tempfile::tempdir().unwrap();
    let storage: Storage = format!("file://{}/new", folder.path().display()).parse().unwrap();
    let files = storage.open("REPORTS_URL", &Lookup::new(&|_| None)).unwrap();
    files.put(&Path::from("attempts/1/a.csv.gz"), "abc".into()).await.unwrap();
    // An upload that was not completed is not a file.
    let mut upload = files.put_multipart(&Path::from("attempts/2/a.csv.gz")).await.unwrap();
    upload.put_part("half".into()).await.unwrap();
    drop(upload);
    assert!(matches!(files.head(&Path::from("attempts/2/a.csv.gz")).await, Err(Error::NotFound { .. })));
    let (from, to) = (Path::from("attempts/1/a.csv.gz"), Path::from("reports/a.csv.gz"));
    files.put_opts(&to, "abc".into(), tagged()).await.unwrap();
    let again = files.put_opts(&to, "abc".into(), PutMode::Create.into()).await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    // A change of the attempt does not change the published file.
    files.put(&from, "xyz".into()).await.unwrap();
    assert_eq!(&files.get(&to).await.unwrap().bytes().await.unwrap()[..], b"abc");
}

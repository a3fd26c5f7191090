import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.LinkedHashMap;
import java.util.Map;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.util.Callback;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBRequestHandler;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBServerHandler;

/**
 * DynamoDB Local in memory, for tests. It listens on the loopback interface only, and drops the databases of
 * finished tests; its own ServerRunner has no option for either. It prints its port, and ends with its standard
 * input, so that it never outlives its parent process.
 */
final class Engine extends Handler.Abstract {
    /**
     * The maximum number of databases. A test has one or two, and each has threads that poll. One that a test still needs must
     * not be the oldest: a test may not work for many seconds without a call.
     */
    private static final int DATABASES = 24;

    /** A database for each access key, the last used one at the end. */
    private final Map<String, Database> databases = new LinkedHashMap<>(DATABASES, 0.75f, true);

    private record Database(LocalDynamoDBRequestHandler requests, LocalDynamoDBServerHandler server) {}

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws Exception {
        var authorization = String.valueOf(request.getHeaders().get("Authorization"));
        var accessKey = authorization.replaceFirst(".*Credential=([^/]*)/.*", "$1");
        return database(accessKey).server.handle(request, response, callback);
    }

    private synchronized Database database(String accessKey) throws Exception {
        var database = databases.get(accessKey);
        if (database == null) {
            var requests = new LocalDynamoDBRequestHandler(0, true, null, false, false);
            database = new Database(requests, new LocalDynamoDBServerHandler(requests, null));
            database.server.setServer(getServer());
            database.server.start();
            databases.put(accessKey, database);
        }
        if (databases.size() > DATABASES) {
            var oldest = databases.values().iterator();
            oldest.next().requests.shutdown();
            oldest.remove();
        }
        return database;
    }

    public static void main(String[] arguments) throws Exception {
        var server = new Server(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        server.setHandler(new Engine());
        server.start();
        System.out.println(server.getURI().getPort());
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}
